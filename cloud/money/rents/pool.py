"""Rent of a pool of actors that grows with the calls in flight and shrinks when there are fewer."""

from __future__ import annotations

from cloud.money.pricing import PoolPrice
from cloud.money.rents.slices import RentedResource
from cloud.timing.virtual_time import to_ns
from training.engine.ports import Ledger, Reservation


class PoolRent:
    """How many actors are paid for, and therefore may exist. All times are the platform's.

    The n-th actor is needed while at least n calls are in flight; it is given up when that was `idle_s` ago. Each is
    rented before it is ordered, so a pool never grows beyond what the ledger allows.
    """

    def __init__(self, price: PoolPrice, ledger: Ledger, id_prefix: str) -> None:
        self._price = price
        self._ledger = ledger
        self._id_prefix = id_prefix
        self._idle_ns = to_ns(price.idle_s)
        self._rented: list[RentedResource] = []
        self._needed_ns: list[int] = []
        self._ordered = 0

    def __len__(self) -> int:
        return len(self._rented)

    @property
    def due_ns(self) -> int | None:
        """When rent has to be renewed or an actor given up, whichever is first."""
        if not self._rented:
            return None
        return min(min(rented.renew_at_ns for rented in self._rented), self._needed_ns[-1] + self._idle_ns)

    def ahead(self, until_ns: int) -> int:
        """Return what else is reserved until then if all actors are kept."""
        return sum(rented.ahead(until_ns) for rented in self._rented)

    def accrued(self, now_ns: int) -> int:
        """Return what would be booked if all actors ended now."""
        return sum(rented.accrued(now_ns) for rented in self._rented)

    def need(self, in_flight: int, now_s: float) -> None:
        """Record that this many calls are in flight now."""
        count = min(in_flight, len(self._rented))
        self._needed_ns[:count] = [to_ns(now_s)] * count

    def grow(self, in_flight: int, now_s: float, round_no: int) -> None:
        """Rent as many more actors as these calls need and the budget allows."""
        wanted = min(in_flight, self._price.most)
        while len(self._rented) < wanted:
            self._ordered += 1
            rented = RentedResource(
                self._price.actor_rent(self._ordered), self._ledger, self._id_prefix, now_s
            )
            if rented.keep(now_s, round_no) is not None:
                return
            self._rented.append(rented)
            self._needed_ns.append(to_ns(now_s))

    def keep(self, now_s: float, round_no: int) -> Reservation | None:
        """Give up actors that were idle for long, and renew the rent of the others. Return the refused reservation,
        if any.
        """
        while self._rented and to_ns(now_s) >= self._needed_ns[-1] + self._idle_ns:
            self._rented.pop().end(now_s)
            self._needed_ns.pop()
        for rented in self._rented:
            if to_ns(now_s) >= rented.renew_at_ns:
                refused = rented.keep(now_s, round_no)
                if refused is not None:
                    return refused
        return None

    def end(self, now_s: float) -> None:
        for rented in self._rented:
            rented.end(now_s)
        self._rented.clear()
        self._needed_ns.clear()
