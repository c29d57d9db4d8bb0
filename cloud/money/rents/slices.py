"""Rent of rented resources: reserved in slices before they begin, settled for the time used."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from cloud.money.pricing import RentPrice, total
from cloud.timing.virtual_time import NS, to_ns
from training.engine.ports import Ledger, Reservation, Settlement

SLICE_S = 60
RENEW_AHEAD_S = 5.0
A_LONG_ROUND = 1.5
"""A round that takes this many times as long as the last must be paid for as well."""


def slices_due(renew_at_ns: int, until_ns: int, slice_s: int) -> int:
    """Return how many slices are reserved by `until_ns`, one after the other, if the first of them is at
    `renew_at_ns`.
    """
    return max(0, (until_ns - renew_at_ns) // to_ns(slice_s) + 1)


def rent_from_start(price: RentPrice, for_s: float) -> int:
    """Return what is reserved for a resource that exists for `for_s`, its first slice included."""
    count = slices_due(-to_ns(RENEW_AHEAD_S), to_ns(for_s), _slice_s(price.round_up_s))
    return count * _a_slice(price)


def rent_going_on(price: RentPrice, for_s: float) -> int:
    """Return the most that is reserved within `for_s`, wherever in a slice it begins; at least a slice."""
    return max(1, ceil(for_s / _slice_s(price.round_up_s))) * _a_slice(price)


def rent_used(price: RentPrice, duration_ns: int) -> int:
    """Return what is booked for a resource from its start to its end: whole slices, and what was used of the last."""
    slice_ns = to_ns(_slice_s(price.round_up_s))
    whole = max(0, -(-duration_ns // slice_ns) - 1)
    return whole * _a_slice(price) + total(price.lines(duration_ns - whole * slice_ns))


@dataclass(frozen=True)
class _Slice:
    reservation: Reservation
    begin_ns: int
    end_ns: int


class RentedResource:
    """One rented resource from its start to its end. All times are the platform's."""

    def __init__(self, price: RentPrice, ledger: Ledger, id_prefix: str, now_s: float) -> None:
        self.price = price
        self.slice_s = _slice_s(price.round_up_s)
        self._ledger = ledger
        self._id_prefix = id_prefix
        self._slices: list[_Slice] = []
        self._count = 0
        self._paid_until_ns = to_ns(now_s)

    @property
    def renew_at_ns(self) -> int:
        """When the next slice has to be reserved: a little before the current one ends."""
        return self._paid_until_ns - to_ns(RENEW_AHEAD_S)

    def ahead(self, until_ns: int) -> int:
        """Return what else is reserved until then if the resource is kept."""
        count = slices_due(self.renew_at_ns, until_ns, self.slice_s)
        return count * _a_slice(self.price)

    def keep(self, now_s: float, round_no: int) -> Reservation | None:
        """Book slices that are over and reserve the next ones in time. Return the refused reservation, if any.

        A wall clock may have advanced between two calls: then the time that has passed is reserved afterwards.
        """
        while to_ns(now_s) >= self.renew_at_ns:
            refused = self._reserve_next(round_no)
            if refused is not None:
                return refused
        over = [piece for piece in self._slices if piece.end_ns <= to_ns(now_s)]
        self._slices = [piece for piece in self._slices if piece.end_ns > to_ns(now_s)]
        self._ledger.settle([self._settlement(piece, piece.end_ns) for piece in over])
        return None

    def end(self, now_s: float) -> None:
        """End the resource: book the time used, in the units it is billed by, and release the rest."""
        now_ns = to_ns(now_s)
        unused = [piece for piece in self._slices if piece.begin_ns >= now_ns]
        settlements = self._settlements_at(now_ns)
        self._slices = []
        self._ledger.release([piece.reservation.id for piece in unused])
        self._ledger.settle(settlements)

    def accrued(self, now_ns: int) -> int:
        """Return what would be booked if the resource ended now."""
        return sum(settlement.picodollars for settlement in self._settlements_at(now_ns))

    def _settlements_at(self, now_ns: int) -> list[Settlement]:
        used = [piece for piece in self._slices if piece.begin_ns < now_ns]
        # Time beyond the last slice was used all the same; its ledger books it as an overrun.
        ends_ns = [now_ns if piece is used[-1] else min(piece.end_ns, now_ns) for piece in used]
        return [self._settlement(*piece) for piece in zip(used, ends_ns, strict=True)]

    def begin_again(self, now_s: float) -> None:
        """Count from now on again, after its end."""
        self._paid_until_ns = to_ns(now_s)

    def _reserve_next(self, round_no: int) -> Reservation | None:
        self._count += 1
        begin_ns = self._paid_until_ns
        end_ns = begin_ns + to_ns(self.slice_s)
        name = f"{self._id_prefix}rent-{self.price.resource}-{self._count}"
        picodollars = total(self.price.lines(end_ns - begin_ns))
        reservation = Reservation(name, "rent", round_no, picodollars)
        if not self._ledger.reserve([reservation])[0]:
            return reservation
        self._slices.append(_Slice(reservation, begin_ns, end_ns))
        self._paid_until_ns = end_ns
        return None

    def _settlement(self, piece: _Slice, end_ns: int) -> Settlement:
        lines = self.price.lines(end_ns - piece.begin_ns)
        usage: dict[str, object] = {
            "resource": self.price.resource,
            "from_s": piece.begin_ns / NS,
            "to_s": end_ns / NS,
        }
        return Settlement(piece.reservation.id, total(lines), "metered", lines, usage)


def _a_slice(price: RentPrice) -> int:
    return total(price.lines(to_ns(_slice_s(price.round_up_s))))


def _slice_s(round_up_s: int) -> int:
    """Return whole units of what is billed by started units, so that a slice is never booked above its reservation."""
    if round_up_s <= 0:
        return SLICE_S
    return max(1, SLICE_S // round_up_s) * round_up_s
