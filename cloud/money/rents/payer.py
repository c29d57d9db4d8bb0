"""Pays for a platform's rented resources, where the platform itself knows what exists and when it is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from cloud.money.rents.job import Rents


class Payer(Protocol):
    """For the platform's own thread. Each group has a number. Rents of a tariff with `rents_while_held` begin and end
    here, as often as the platform says.
    """

    def take(self, number: int, actors: int) -> str:
        """Pay for one more group of this many actors, from now on. Return why it cannot be paid for, or an empty
        string.
        """

    def leave(self, number: int) -> None:
        """End the payment: it is certain that this group is not billed any more."""

    def begin_rents(self) -> str:
        """Pay the tariff's rents from now on. Return why they cannot be paid, or an empty string."""

    def end_rents(self) -> None:
        """End the tariff's rents: nothing that they pay for is held now."""


@runtime_checkable
class RentsItsResources(Protocol):
    """A platform that knows by itself what it has: it asks the payer before each, and reports when one is gone."""

    def set_payer(self, payer: Payer) -> None: ...


class NoPayer:
    """A payer that charges nothing."""

    def take(self, number: int, actors: int) -> str:
        return ""

    def leave(self, number: int) -> None:
        pass

    def begin_rents(self) -> str:
        return ""

    def end_rents(self) -> None:
        pass


class LedgerPayer:
    """A payer that pays from a ledger. `book` is called before money is reserved."""

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

    def begin_rents(self) -> str:
        self._book()
        return self._rents.begin(self._now_s(), self._round_no())

    def end_rents(self) -> None:
        self._rents.suspend(self._now_s())
