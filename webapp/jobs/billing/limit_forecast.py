"""The regular forecast: which running jobs and budgets are expected to meet their limits. Each is announced
once."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import Observed
from webapp.jobs.billing.burn_rate import Burn, burns_of
from webapp.jobs.models import Job
from webapp.money.budget_chain import lock_budgets, roll_over
from webapp.money.models import Account, Budget, Crossing, CrossingKind
from webapp.money.periods import period_end
from webapp.money.thresholds import FORECAST_THRESHOLD, note_expected


def announce_expected_limits(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Write a crossing for each job and budget that is expected to meet its limit, and begin new periods.

    The expected time is left out where simulated jobs take part: their hours are virtual.
    """
    now = clock.now()
    running = Job.objects.filter(observed=Observed.RUNNING).select_related("account")
    known = burns_of(running)
    burns = {job.account.pk: known[job.pk] for job in running if job.pk in known}
    virtual = {job.account.pk for job in running if job.simulated}
    for account in Account.objects.filter(pk__in=burns):
        burn = burns[account.pk]
        if not burn.ends_first and burn.limit_in_s is not None and not _is_announced(account):
            meets = None if account.pk in virtual else now + timedelta(seconds=burn.limit_in_s)
            note_expected(account, burn.spent, now, meets)
    for budget_id in Budget.objects.filter(closed_at=None).values_list("pk", flat=True):
        _look_at(budget_id, burns, virtual, now)


def _is_announced(one: Account | Budget) -> bool:
    """Return whether a forecast crossing of this arming exists. The unique row decides; this check saves the
    write."""
    field = "account" if isinstance(one, Account) else "budget"
    rows = Crossing.objects.filter(**{field: one}, kind=CrossingKind.FORECAST, threshold=FORECAST_THRESHOLD)
    return rows.filter(arming=one.arming).exists()


@transaction.atomic
def _look_at(budget_id: int, burns: dict[int, Burn], virtual: set[int], now: datetime) -> None:
    budget = roll_over(lock_budgets(Budget.objects.filter(pk=budget_id))[0], now)
    below = set(Account.objects.filter(budgets=budget, pk__in=burns).values_list("pk", flat=True))
    spent = budget.spent_picodollars + budget.overrun_picodollars
    expected_at = meets_at([burns[pk] for pk in below], spent, budget, now)
    if expected_at is not None and not _is_announced(budget):
        note_expected(budget, spent, now, None if below & virtual else expected_at)


def meets_at(burns: list[Burn], spent: int, budget: Budget, now: datetime) -> datetime | None:
    """Return when jobs with these rates meet a budget's limit; None if they, or the period, end before."""
    left, at_s = float(budget.limit_picodollars - spent), 0.0
    end = period_end(budget.period, now)
    # Between two jobs' ends the total rate is constant.
    open_ends = [(min(_ends_in_s(one), 10**9), one.hourly / 3600) for one in burns]
    for until_s, _ in sorted(open_ends):
        rate = sum(each for ends_s, each in open_ends if ends_s > at_s)
        if rate * (until_s - at_s) >= left:
            meets = now + timedelta(seconds=at_s + left / rate)
            return meets if end is None or meets < end else None
        left -= rate * (until_s - at_s)
        at_s = until_s
    return None


def _ends_in_s(burn: Burn) -> float:
    """Return the seconds until the job ends or meets its own limit."""
    return min(one for one in (burn.done_in_s, burn.limit_in_s, float(10**9)) if one is not None)
