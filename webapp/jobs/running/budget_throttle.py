"""How a running job approaches its limit: with fewer actors if its spec says so, and it stops between two
rounds.

Without this module the ledger still holds the limit: it refuses a call that does not fit, and the round under
way is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from training.engine.ports import Ledger, Reservation, Room, Settlement
from training.engine.reports import Spend
from training.scaling.plan import Bounds
from webapp.formatting import display_usd
from webapp.money.models import AtLine
from webapp.money.queries import Limit

FEWER_FROM = 0.8


class WatchedLedger:
    """A ledger that tracks what calls hold now, and the highest need of a round.

    `used` is what was reserved and not released since the start: the room shrinks by as much.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[str, Reservation] = {}
        self._settled = 0
        self._calls_paid = 0
        self._peak = 0
        self.calls = 0
        self._rent = 0
        self.round_needs = 0
        self.rounds = 0

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        answers = self._ledger.reserve(batch)
        for item, taken in zip(batch, answers, strict=True):
            if taken and item.id not in self._open:
                self._open[item.id] = item
                self._count(item, 1)
        self._peak = max(self._peak, self.calls + self._calls_paid)
        return answers

    def settle(self, batch: Sequence[Settlement]) -> None:
        self._ledger.settle(batch)
        for item in batch:
            if (reserved := self._open.get(item.id)) is not None:
                self._settled += item.picodollars
                self._calls_paid += item.picodollars if reserved.kind != "rent" else 0
        self._forget([item.id for item in batch])

    def release(self, ids: Sequence[str]) -> None:
        self._ledger.release(ids)
        self._forget(ids)

    def headroom(self) -> int:
        return self._ledger.headroom()

    def room(self) -> Room:
        return self._ledger.room()

    def spend(self) -> Spend:
        return self._ledger.spend()

    @property
    def used(self) -> int:
        return self.calls + self._rent + self._settled

    def round_over(self) -> None:
        """Set the need of the next round: what this round had paid and reserved at its highest."""
        self.round_needs, self._peak, self._calls_paid = self._peak, self.calls, 0
        self.rounds += 1

    def _forget(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            if (item := self._open.pop(id_, None)) is not None:
                self._count(item, -1)

    def _count(self, item: Reservation, times: int) -> None:
        if item.kind == "rent":
            self._rent += times * item.picodollars
        else:
            self.calls += times * item.picodollars


def drain_reason(
    limits: Sequence[Limit], ledger: WatchedLedger, rent: int = 0, round_name: str = "round"
) -> str:
    """Return why no further round may begin; empty while a round like the last fits, or the spec says to try.

    `rent` is the rent due meanwhile.
    """
    so = f"the last {round_name} was finished and saved"
    return _too_tight(limits, ledger.round_needs + rent, ledger.calls, so, round_name)


def no_beginning(limits: Sequence[Limit], least: int, round_name: str = "round") -> str:
    """Return why a run may not begin: `least`, the worst case of its first round, is not free. Else empty."""
    return _too_tight(limits, least, 0, "so none was begun", round_name)


def _too_tight(limits: Sequence[Limit], needs: int, held: int, so: str, round_name: str) -> str:
    for next_limit in sorted(limits, key=lambda limit: limit.room):
        more = needs - held  # what calls in flight hold is part of what the round needs, and is not free
        if next_limit.room < more and next_limit.at_line != AtLine.STOP:
            wanted = f"the next {round_name} may need {display_usd(more)}{' more' if held else ''}"
            return f"{wanted} and {display_usd(next_limit.room)} of {next_limit.name} is left; {so}"
    return ""


def bounds_near(limits: Sequence[Limit], bounds: Bounds, usual: int) -> Bounds:
    """Return bounds that shrink linearly from 80 % of a limit on, if the spec or the budget says so."""
    fewer = [limit for limit in limits if limit.at_line == AtLine.FEWER and limit.spent_share >= FEWER_FROM]
    if not fewer:
        return bounds
    tightest = max(fewer, key=lambda limit: limit.spent_share)
    share_left = max(0.0, 1 - tightest.spent_share) / (1 - FEWER_FROM)
    most = max(bounds.actors_min, min(bounds.actors_max, ceil(min(usual, bounds.actors_max) * share_left)))
    because = f"because {100 * tightest.spent_share:.0f} % of {tightest.name} is spent"
    return replace(bounds, actors_max=most, learners_share=share_left, because=because)
