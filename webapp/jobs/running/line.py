"""How a running job comes to its line: with fewer actors first where that is asked for, and between two rounds.

Without this the ledger still holds: it refuses what does not fit, and the round under way is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from training.ports import Ledger, Reservation, Settlement
from training.reports import Spend
from training.scaling.plan import Bounds
from webapp.money.amounts import display_usd
from webapp.money.chain import headroom
from webapp.money.models import Account, AtLine
from webapp.money.queries import budgets_above

FEWER_FROM = 0.8


@dataclass(frozen=True)
class Limit:
    """One of the limits that hold a job: its own or a budget's above. `room`: what it may still reserve under it."""

    name: str
    at_line: str
    spent_share: float
    room: int


def limits_of(account_id: int, at_line: str, now: datetime) -> list[Limit]:
    """What holds the job: its own limit first, then the budgets above."""
    account = Account.objects.get(pk=account_id)
    spent = account.spent_picodollars + account.overrun_picodollars
    held = spent + account.reserved_picodollars
    own = account.limit_picodollars
    found = [Limit("the budget", at_line, spent / own, max(0, own - held))]
    for budget in budgets_above(account_id, now):
        share = (budget.spent_picodollars + budget.overrun_picodollars) / budget.limit_picodollars
        room = account.granted_picodollars - held + headroom(budget)
        found.append(Limit(f"the budget “{budget.name}”", budget.at_line, share, max(0, room)))
    return found


class WatchedLedger:
    """A ledger that remembers what calls have reserved now, and the most that they had at a time.

    `used` is what was reserved and not given back since the beginning: what room there was has shrunk by its growth.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[str, Reservation] = {}
        self._settled = 0
        self._peak = 0
        self.calls = 0
        self._rent = 0
        self.round_needs = 0

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        answers = self._ledger.reserve(batch)
        for item, taken in zip(batch, answers, strict=True):
            if taken and item.id not in self._open:
                self._open[item.id] = item
                self._count(item, 1)
        self._peak = max(self._peak, self.calls)
        return answers

    def settle(self, batch: Sequence[Settlement]) -> None:
        self._ledger.settle(batch)
        self._settled += sum(item.picodollars for item in batch if item.id in self._open)
        self._forget([item.id for item in batch])

    def release(self, ids: Sequence[str]) -> None:
        self._ledger.release(ids)
        self._forget(ids)

    def headroom(self) -> int:
        return self._ledger.headroom()

    def spend(self) -> Spend:
        return self._ledger.spend()

    @property
    def used(self) -> int:
        return self.calls + self._rent + self._settled

    def round_over(self) -> None:
        """A round like the one that ends now needs for its calls what this one had set aside at most."""
        self.round_needs, self._peak = self._peak, self.calls

    def _forget(self, ids: Sequence[str]) -> None:
        for one in ids:
            if (item := self._open.pop(one, None)) is not None:
                self._count(item, -1)

    def _count(self, item: Reservation, times: int) -> None:
        if item.kind == "rent":
            self._rent += times * item.picodollars
        else:
            self.calls += times * item.picodollars


def drain_reason(limits: Sequence[Limit], ledger: WatchedLedger, rent: int = 0) -> str:
    """Why no further round may begin; empty as long as one like the last fits, or where it is to be tried anyhow.

    `rent`: what falls due meanwhile for what stands.
    """
    needs = ledger.round_needs + rent
    for one in sorted(limits, key=lambda limit: limit.room):
        left = one.room + ledger.calls
        if left >= needs or one.at_line == AtLine.STOP or not ledger.round_needs:
            continue
        return (
            f"the next round may need {display_usd(needs)} and {display_usd(left)} of {one.name} is left;"
            " the last round was finished and saved"
        )
    return ""


def bounds_near(limits: Sequence[Limit], bounds: Bounds, usual: int) -> Bounds:
    """Bounds that shrink in a straight line from four fifths of a limit on, where that is asked for."""
    fewer = [one for one in limits if one.at_line == AtLine.FEWER and one.spent_share >= FEWER_FROM]
    if not fewer:
        return bounds
    tightest = max(fewer, key=lambda limit: limit.spent_share)
    share_left = max(0.0, 1 - tightest.spent_share) / (1 - FEWER_FROM)
    most = max(bounds.actors_min, min(bounds.actors_max, ceil(min(usual, bounds.actors_max) * share_left)))
    because = f"because {100 * tightest.spent_share:.0f} % of {tightest.name} is spent"
    return Bounds(bounds.actors_min, most, bounds.memory_mb_min, bounds.memory_mb_max, because)
