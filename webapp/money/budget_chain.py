"""The budgets above an account, which hold what was granted to it: locked and changed together.

Lock the account first. Budgets are locked in the order of their ids, which prevents deadlocks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import F, QuerySet

from webapp.money.models import Account, Budget, Period
from webapp.money.thresholds import note_crossings

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def period_start(period: str, now: datetime) -> datetime:
    """Return the start of the period of `now`; a total has no start."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == Period.MONTHLY:
        return midnight.replace(day=1)
    if period == Period.WEEKLY:
        return midnight - timedelta(days=midnight.weekday())
    return _EVER


def period_end(period: str, now: datetime) -> datetime | None:
    """Return the start of the next period; None for a total."""
    start = period_start(period, now)
    if period == Period.MONTHLY:
        return (start + timedelta(days=32)).replace(day=1)
    if period == Period.WEEKLY:
        return start + timedelta(days=7)
    return None


def lock_budgets(rows: QuerySet[Budget]) -> list[Budget]:
    """Lock and return the budgets of a query, in the order of their ids."""
    rows = rows.order_by("pk")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(of=("self",))
    return list(rows)


def headroom(budget: Budget) -> int:
    """Return what of a budget is neither spent nor held for a job."""
    held = budget.spent_picodollars + budget.reserved_picodollars + budget.overrun_picodollars
    return max(0, budget.limit_picodollars - held)


def roll_over(budget: Budget, now: datetime) -> Budget:
    """Return the locked budget in its present period. In a new period nothing is spent; jobs keep what they
    hold."""
    start = period_start(budget.period, now)
    if start > budget.period_start:
        budget.period_start = start
        budget.spent_picodollars = budget.overrun_picodollars = 0
        budget.arming += 1
        budget.save(update_fields=["period_start", "spent_picodollars", "overrun_picodollars", "arming"])
    return budget


class Chain:
    """The open budgets above a locked account, themselves locked, each in its present period."""

    def __init__(self, account_id: int, now: datetime) -> None:
        rows = lock_budgets(Budget.objects.filter(accounts=account_id, closed_at=None))
        self.budgets = [roll_over(budget, now) for budget in rows]
        # Machine clocks differ: a booking never falls before a period that has begun.
        self.now = max([now, *(budget.period_start for budget in self.budgets)])

    def tightest(self) -> Budget | None:
        """Return the budget with the least room; None if there is none."""
        return min(self.budgets, key=headroom, default=None)

    def room(self, at_most: int) -> int:
        """Return how much of `at_most` all of them have room for."""
        return min([at_most, *map(headroom, self.budgets)])

    def hold(self, amount: int) -> None:
        """Reserve (or, below zero, release) in each of them."""
        if amount and self.budgets:
            self._rows().update(reserved_picodollars=F("reserved_picodollars") + amount)

    def book(self, spent: int, overrun: int = 0) -> None:
        """Turn what was held into spending; overruns are kept apart. Writes the thresholds that this crosses."""
        if not self.budgets or not (spent or overrun):
            return
        self._rows().update(
            reserved_picodollars=F("reserved_picodollars") - spent,
            spent_picodollars=F("spent_picodollars") + spent,
            overrun_picodollars=F("overrun_picodollars") + overrun,
        )
        for budget in self.budgets:
            before = budget.spent_picodollars + budget.overrun_picodollars
            note_crossings(budget, before, before + spent + overrun, self.now)

    def correct(self, less: int, over: int, booked_at: datetime) -> None:
        """Correct an earlier booking by less spending, or by an overrun. A past period does not change."""
        concerned = [budget for budget in self.budgets if booked_at >= budget.period_start]
        Budget.objects.filter(pk__in=[budget.pk for budget in concerned]).update(
            spent_picodollars=F("spent_picodollars") - less,
            overrun_picodollars=F("overrun_picodollars") + over,
        )
        for budget in concerned:
            before = budget.spent_picodollars + budget.overrun_picodollars
            note_crossings(budget, before, before + over - less, self.now)

    def _rows(self) -> QuerySet[Budget]:
        return Budget.objects.filter(pk__in=[budget.pk for budget in self.budgets])


def give_back_grant(account: Account, now: datetime) -> None:
    """Return to the budgets what the locked account holds of them beyond its open reservations."""
    unused = account.granted_picodollars - account.spent_picodollars - account.reserved_picodollars
    chain = Chain(account.pk, now)
    if unused and chain.budgets:
        chain.hold(-unused)
        Account.objects.filter(pk=account.pk).update(granted_picodollars=F("granted_picodollars") - unused)
