"""Read-only queries of money: a job's bill, the budgets above an account, and the limits of a running job."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from webapp.money.amounts import unreal_word
from webapp.money.budget_chain import headroom, period_start
from webapp.money.models import Account, BillSheet, Budget, Period


def bill_sheet(job_id: str) -> BillSheet | None:
    """Return the job's bill with its forecast at launch, in one query."""
    return BillSheet.objects.filter(job_id=job_id).select_related("job__launch_forecast").first()


def as_of(budget: Budget, now: datetime) -> Budget:
    """Return the budget for display, unsaved: in a period without bookings nothing is spent."""
    start = period_start(budget.period, now)
    if start > budget.period_start:
        budget.period_start, budget.spent_picodollars, budget.overrun_picodollars = start, 0, 0
    return budget


def budgets_above(account_id: int, now: datetime) -> list[Budget]:
    """Return the open budgets over an account, tightest first. Locks nothing."""
    rows = Budget.objects.filter(accounts=account_id, closed_at=None)
    return sorted((as_of(budget, now) for budget in rows), key=lambda budget: (headroom(budget), budget.pk))


@dataclass(frozen=True)
class Limit:
    """A limit of a job: its own or a budget's. `room` is what it may still reserve under it."""

    name: str
    at_line: str
    spent_share: float
    room: int


OWN_BUDGET = "the job's own budget"


def limits_of(account_id: int, at_line: str, now: datetime) -> list[Limit]:
    """Return the job's own limit first, at which `at_line` happens, then those of the budgets above."""
    account = Account.objects.get(pk=account_id)
    spent = account.spent_picodollars + account.overrun_picodollars
    held = spent + account.reserved_picodollars
    own = account.limit_picodollars
    limits = [Limit(OWN_BUDGET, at_line, spent / own, max(0, own - held))]
    for budget in budgets_above(account_id, now):
        share = (budget.spent_picodollars + budget.overrun_picodollars) / budget.limit_picodollars
        room = account.granted_picodollars - held + headroom(budget)
        limits.append(Limit(f"the budget “{budget.name}”", budget.at_line, share, max(0, room)))
    return limits


@dataclass(frozen=True)
class Cap:
    """The most that an account may cost in all, what of it is free, and the budget above that leaves less than
    the account's own limit, if one does."""

    total: int
    free: int
    budget: Budget | None = None

    @property
    def because(self) -> str:
        """Return which budget sets the cap; empty if the account's own limit does."""
        if self.budget is None:
            return ""
        return f"“{self.budget.name}” leaves no more{_WITHIN[Period(self.budget.period)]}"


_WITHIN = {Period.TOTAL: "", Period.MONTHLY: " this month", Period.WEEKLY: " this week"}


def cap_of(account: Account, now: datetime) -> Cap:
    """Return the cap of an account whose job may still spend. Lists prefetch `account__budgets`."""
    held, cap = _held(account), own_cap_of(account)
    above = [as_of(budget, now) for budget in account.budgets.all() if budget.closed_at is None]
    if tightest := min(above, key=lambda budget: (headroom(budget), budget.pk), default=None):
        room = max(0, account.granted_picodollars - held + headroom(tightest))
        if room < cap.free:
            return Cap(held + room, room, tightest)
    return cap


def own_cap_of(account: Account) -> Cap:
    """Return the cap of an account's own limit alone: of a job that is over, budgets above limit nothing."""
    held = _held(account)
    return Cap(account.limit_picodollars, max(0, account.limit_picodollars - held))


def cap_together(
    spending: Sequence[Account], over: Sequence[Account], now: datetime, later: Sequence[Budget] = ()
) -> Cap:
    """Return the cap of several accounts together: of jobs that may still spend and of jobs that are over.

    `later` are the budgets of further jobs that come beside them: then only those cap the sum. Lists prefetch
    `budgets`.
    """
    held = sum(map(_held, [*spending, *over]))
    caps = []
    above = {budget.pk: budget for budget in later}
    if not later:
        own = sum(own_cap_of(account).free for account in spending)
        caps = [Cap(held + own, own)]
        above = {
            one.pk: one for account in spending for one in account.budgets.all() if one.closed_at is None
        }
    for pk, budget in sorted(above.items()):
        below = [account for account in spending if pk in _ids(account)]
        room = headroom(as_of(budget, now)) + sum(one.granted_picodollars - _held(one) for one in below)
        beside = sum(own_cap_of(account).free for account in spending if account not in below)
        caps.append(Cap(held + max(0, room) + beside, max(0, room) + beside, budget))
    return min(caps, key=lambda cap: cap.free)


def _held(account: Account) -> int:
    return account.spent_picodollars + account.overrun_picodollars + account.reserved_picodollars


def _ids(account: Account) -> set[int]:
    return {budget.pk for budget in account.budgets.all()}


def find_limiting_budget(account: Account, above: Sequence[Budget]) -> Budget | None:
    """Return the budget above that leaves the account less than its own limit does; None if none does."""
    own = account.limit_picodollars - account.spent_picodollars - account.overrun_picodollars
    tightest = min(above, key=headroom, default=None)
    if tightest is None:
        return None
    unspent = account.granted_picodollars - account.spent_picodollars
    return tightest if headroom(tightest) + unspent < own else None


def unreal_below(budget_ids: Sequence[int]) -> dict[int, str]:
    """Return, by budget, the word for money that is not charged: "simulated", "partly emulated"; missing or
    empty if all is paid."""
    accounts = Account.objects.filter(budgets__in=budget_ids).filter(
        Q(spent_picodollars__gt=0) | Q(granted_picodollars__gt=0)
    )
    kinds = defaultdict[int, set[str]](set)
    rows = accounts.values_list("budgets", "job__simulated", "job__emulated")
    for budget_id, simulated, emulated in rows.distinct():
        kinds[budget_id].add(unreal_word(simulated, emulated))
    return {budget_id: unreal_words(kinds_below) for budget_id, kinds_below in kinds.items()}


def unreal_words(kinds: set[str]) -> str:
    """Return the word for money of these kinds, of which the empty one is paid."""
    words = " and ".join(sorted(kinds - {""}, reverse=True))
    return f"partly {words}" if words and "" in kinds else words
