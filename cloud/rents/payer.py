"""Who pays for what a platform lets stand, where the platform itself knows what stands and when it is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from cloud.rents.job import Rents


class Landlord(Protocol):
    """For the platform's own thread. Whoever stands is known by a number."""

    def take(self, number: int, actors: int) -> str:
        """Pay for one more group of so many actors, from now on. Why it cannot be paid for, if so."""

    def leave(self, number: int) -> None:
        """It is certain that nothing is billed for this one any more."""


@runtime_checkable
class Renting(Protocol):
    """A platform that orders by itself what stands for it: each time it asks first, and tells when it is gone."""

    def rent_from(self, landlord: Landlord) -> None: ...


class NoRent:
    """Nobody counts."""

    def take(self, number: int, actors: int) -> str:
        return ""

    def leave(self, number: int) -> None:
        pass


class PayingRents:
    """A landlord who pays from a ledger. `book` is called before money is asked for."""

    def __init__(
        self, rents: Rents, now_s: Callable[[], float], round_no: Callable[[], int], book: Callable[[], None]
    ) -> None:
        self._rents = rents
        self._now_s = now_s
        self._round_no = round_no
        self._book = book

    def take(self, number: int, actors: int) -> str:
        self._book()
        return self._rents.take(number, actors, self._now_s(), self._round_no())

    def leave(self, number: int) -> None:
        self._rents.leave(number, self._now_s())
