"""All rented resources of a job: machines and capacity of its tariff, and the actors of its pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cloud.formatting import display_usd, plural
from cloud.money.ledger import remaining_money
from cloud.money.pricing import RentPrice, Tariff
from cloud.money.rents.pool import PoolRent
from cloud.money.rents.slices import RentedResource, rent_from_start, rent_going_on
from cloud.timing.virtual_time import to_ns
from training.engine.ports import Ledger


def rent_until(tariff: Tariff, actors: int, for_s: float) -> int:
    """Return what is reserved for all rented resources from a job's start until `for_s` later, with `actors` in a
    pool.
    """
    return _rent_of_all(tariff, actors, lambda rent: rent_from_start(rent, for_s))


def rent_between(tariff: Tariff, actors: int, for_s: float) -> int:
    """Return what is reserved within `for_s` for all resources that already exist: at least a slice of each."""
    return _rent_of_all(tariff, actors, lambda rent: rent_going_on(rent, for_s))


def _rent_of_all(tariff: Tariff, actors: int, rent_of: Callable[[RentPrice], int]) -> int:
    rent = sum(map(rent_of, tariff.rents))
    pool = tariff.pool
    if pool is not None:
        rent += min(actors, pool.most) * rent_of(pool.actor_rent(1))
    return rent


class Rents:
    """Pays rent when it falls due. All times are the platform's; the caller has booked everything else before."""

    def __init__(self, tariff: Tariff, ledger: Ledger, id_prefix: str) -> None:
        self._tariff = tariff
        self._ledger = ledger
        self._id_prefix = id_prefix
        self._kept: list[RentedResource] | None = [] if tariff.rents_while_held else None
        self._suspended: list[RentedResource] | None = None
        pool = tariff.pool
        self._pool = PoolRent(pool, ledger, id_prefix) if pool is not None and not pool.in_groups else None
        self._groups: dict[int, RentedResource] = {}

    @property
    def actors(self) -> int | None:
        """How many actors of the pool are paid for; None without a pool that grows."""
        return None if self._pool is None else len(self._pool)

    def due_ns(self) -> int | None:
        """Return when something next has to be paid or given up."""
        dues = [rented.renew_at_ns for rented in (*(self._kept or ()), *self._groups.values())]
        if self._pool is not None and (pool_ns := self._pool.due_ns) is not None:
            dues.append(pool_ns)
        return min(dues, default=None)

    def ahead(self, now_s: float, for_s: float) -> int:
        """Return what falls due within the next `for_s` seconds if all rented resources are kept."""
        end_ns = to_ns(now_s + for_s)
        return sum(rent.ahead(end_ns) for rent in self._all())

    def accrued(self, now_s: float) -> int:
        """Return what would be booked if all rented resources ended now."""
        return sum(rent.accrued(to_ns(now_s)) for rent in self._all())

    def _all(self) -> Iterator[RentedResource | PoolRent]:
        yield from self._kept or ()
        yield from self._groups.values()
        if self._pool is not None:
            yield self._pool

    def is_due(self, now_s: float) -> bool:
        if self._kept is None and self._tariff.rents:
            return True
        due_ns = self.due_ns()
        return due_ns is not None and due_ns <= to_ns(now_s)

    def pay(self, now_s: float, round_no: int) -> str:
        """Pay what is due; the first time, start all resources. Return why the job cannot continue, or an empty
        string.
        """
        if self._kept is None:
            self._kept = self._new(now_s)
        for rented in (*self._kept, *self._groups.values()):
            if to_ns(now_s) < rented.renew_at_ns:
                continue
            refused = rented.keep(now_s, round_no)
            if refused is not None:
                what = f"the next {rented.slice_s} s of {rented.price.resource} ({rented.price.skus})"
                return self._too_dear(what, refused.picodollars)
        refused = self._pool.keep(now_s, round_no) if self._pool is not None else None
        return (
            self._too_dear("the next minute of an actor", refused.picodollars) if refused is not None else ""
        )

    def begin(self, now_s: float, round_no: int) -> str:
        """Pay the tariff's rents from now on. Return why they cannot be paid, or an empty string."""
        self._kept = self._new(now_s) if self._suspended is None else self._suspended
        for rented in self._kept:
            rented.begin_again(now_s)
        too_dear = self.pay(now_s, round_no)
        if too_dear:
            self.suspend(now_s)
        return too_dear

    def suspend(self, now_s: float) -> None:
        """End the tariff's rents, until they begin again."""
        for rented in self._kept or ():
            rented.end(now_s)
        self._suspended, self._kept = self._kept, []

    def need(self, actor_calls: int, now_s: float) -> None:
        """Record that this many calls of actors are in flight now."""
        if self._pool is not None:
            self._pool.need(actor_calls, now_s)

    def grow(self, actor_calls: int, now_s: float, round_no: int) -> str:
        """Rent actors for this many calls, as many as can be paid. Return why there is none, or an empty string."""
        if self._pool is None:
            return ""
        self._pool.grow(actor_calls, now_s, round_no)
        self._pool.need(actor_calls, now_s)
        if len(self._pool):
            return ""
        return f"not even one actor can be rented for a minute: {remaining_money(self._ledger)}"

    def take(self, number: int, actors: int, now_s: float, round_no: int) -> str:
        """Pay for a group of the pool from now on. Return why it cannot be paid for, or an empty string."""
        assert self._tariff.pool is not None
        group = self._tariff.pool.group(number, actors)
        rented = RentedResource(group, self._ledger, self._id_prefix, now_s)
        refused = rented.keep(now_s, round_no)
        if refused is not None:
            what = f"{rented.slice_s} s of {plural(actors, 'more actor')} ({group.skus})"
            return self._too_dear(what, refused.picodollars)
        self._groups[number] = rented
        return ""

    def leave(self, number: int, now_s: float) -> None:
        """Stop billing this group."""
        rented = self._groups.pop(number, None)
        if rented is not None:
            rented.end(now_s)

    def end(self, now_s: float) -> None:
        for rented in (*(self._kept or ()), *self._groups.values()):
            rented.end(now_s)
        self._kept = []
        self._groups.clear()
        if self._pool is not None:
            self._pool.end(now_s)

    def _new(self, now_s: float) -> list[RentedResource]:
        return [RentedResource(rent, self._ledger, self._id_prefix, now_s) for rent in self._tariff.rents]

    def _too_dear(self, what: str, picodollars: int) -> str:
        return f"{what} would cost {display_usd(picodollars)} and {remaining_money(self._ledger)}"
