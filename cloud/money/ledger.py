"""A job's money in memory, for runs without a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloud.formatting import display_usd
from training.engine.ports import Ledger, Reservation, Room, Settlement
from training.engine.reports import Spend


def remaining_money(ledger: Ledger) -> str:
    """Return the remaining money for the message of a refusal: "$0.0092 of the budget “March” is left"."""
    room = ledger.room()
    return f"{display_usd(room.picodollars)} of {room.limit} is left"


@dataclass
class _Entry:
    reservation: Reservation
    settlement: Settlement | None = None
    open: bool = True


class MemoryLedger:
    """Implements `training.engine.ports.Ledger`: spent + reserved never exceed the limit.

    What a settlement takes beyond its reservation is recorded as overrun and freezes the account: a price or a cap
    was wrong, and nothing more may be spent before a person has checked. `on_settled` is called once for each
    booking.
    """

    def __init__(
        self, limit_picodollars: int, *, on_settled: Callable[[Settlement], None] = lambda settlement: None
    ) -> None:
        if limit_picodollars < 0:
            raise ValueError(f"a budget of {limit_picodollars} picodollars; it must not be negative")
        self._limit = limit_picodollars
        self._on_settled = on_settled
        self._entries: dict[str, _Entry] = {}
        self._reserved = 0
        self._spent = 0
        self.overrun_picodollars = 0
        self.frozen = False

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        return [self._reserve(reservation) for reservation in batch]

    def _reserve(self, reservation: Reservation) -> bool:
        known = self._entries.get(reservation.id)
        if known is not None:
            # Requested again after a lost answer: the same answer, and no second amount.
            return known.open
        if reservation.picodollars < 0:
            raise ValueError(f"{reservation.id} would reserve {reservation.picodollars} picodollars")
        if self.frozen or reservation.picodollars > self.headroom():
            return False
        self._entries[reservation.id] = _Entry(reservation)
        self._reserved += reservation.picodollars
        return True

    def settle(self, batch: Sequence[Settlement]) -> None:
        for settlement in batch:
            entry = self._entries.get(settlement.id)
            if entry is None or not entry.open:
                continue
            entry.open = False
            entry.settlement = settlement
            reserved = entry.reservation.picodollars
            self._reserved -= reserved
            self._spent += min(settlement.picodollars, reserved)
            if settlement.picodollars > reserved:
                self.overrun_picodollars += settlement.picodollars - reserved
                self.frozen = True
            self._on_settled(settlement)

    def release(self, ids: Sequence[str]) -> None:
        for reservation_id in ids:
            entry = self._entries.get(reservation_id)
            if entry is not None and entry.open:
                entry.open = False
                self._reserved -= entry.reservation.picodollars

    def headroom(self) -> int:
        return 0 if self.frozen else self._limit - self._spent - self._reserved

    def room(self) -> Room:
        return Room(self.headroom(), "the budget")

    def spend(self) -> Spend:
        """Return the money now. Overruns are part of what was spent."""
        return Spend(
            spent_picodollars=self._spent + self.overrun_picodollars,
            reserved_picodollars=self._reserved,
            limit_picodollars=self._limit,
        )

    def settlements(self) -> list[Settlement]:
        """Return the bookings, in the order in which they were reserved."""
        return [entry.settlement for entry in self._entries.values() if entry.settlement is not None]
