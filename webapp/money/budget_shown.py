"""A budget as pages show it: figures, its state, and what it is heading for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webapp.jobs.models import Job, Observed
from webapp.jobs.wording import Shown
from webapp.money.amounts import display_usd
from webapp.money.budget_words import day, period_words, scope_words
from webapp.money.burning import burn_of
from webapp.money.chain import headroom
from webapp.money.look_ahead import meets_at
from webapp.money.models import AtLine, Budget
from webapp.money.periods import period_end
from webapp.money.queries import as_of, unreal_below


@dataclass(frozen=True)
class ShownBudget:
    """`holds`: how many jobs have something set aside in it. `outlook`: empty where nothing is to be said.

    `stopped` are jobs of its project: who sees a budget above all projects need not see into each of them.
    `unreal` is the word for its money that nobody pays.
    """

    budget: Budget
    counts: str
    period: str
    spent: int
    reserved: int
    free: int
    limit: int
    spent_and_reserved: float
    holds: int
    state: Shown | None
    outlook: str
    at_line: str
    stopped: list[Job]
    unreal: str


def shown_budget(budget: Budget, now: datetime) -> ShownBudget:
    budget = as_of(budget, now)
    spent = budget.spent_picodollars + budget.overrun_picodollars
    holding = budget.accounts.filter(granted_picodollars__gt=0).exclude(
        job__observed__in=(Observed.SUCCEEDED, Observed.FAILED, Observed.CANCELLED, Observed.PAUSED)
    )
    stopped = Job.objects.filter(account__budgets=budget, observed=Observed.PAUSED, reason_code="budget")
    end = period_end(budget.period, now)
    words = period_words(budget)
    return ShownBudget(
        budget=budget,
        counts=scope_words(budget),
        period=words if end is None else f"{words}, anew on {day(end)}",
        spent=spent,
        reserved=budget.reserved_picodollars,
        free=headroom(budget),
        limit=budget.limit_picodollars,
        spent_and_reserved=min(100.0, 100 * (spent + budget.reserved_picodollars) / budget.limit_picodollars),
        holds=holding.count(),
        state=_state(100 * spent / budget.limit_picodollars),
        outlook=_outlook(budget, spent, now),
        at_line=str(AtLine(budget.at_line).label),
        stopped=list(stopped.order_by("-since")[:5]) if budget.project_id else [],
        unreal=unreal_below(budget.pk),
    )


def _state(percent: float) -> Shown | None:
    """Said from four fifths on: below, a budget is nothing to look at."""
    if percent >= 100:
        return Shown("At its line", "budget", "sign-stop-fill")
    if percent >= 80:
        return Shown(f"{int(percent)} % spent", "warning", "exclamation-triangle-fill")
    return None


def _outlook(budget: Budget, spent: int, now: datetime) -> str:
    """Of jobs whose hours are hours: the time of a simulated cloud says nothing about the time of day."""
    below = Job.objects.filter(account__budgets=budget, observed=Observed.RUNNING, simulated=False)
    running = below.select_related("account")
    burns = [burn for job in running if (burn := burn_of(job)) is not None]
    if not burns:
        return ""
    jobs = "1 job" if len(burns) == 1 else f"{len(burns)} jobs"
    rate = f"{jobs} at {display_usd(sum(burn.hourly for burn in burns))} an hour"
    meets = meets_at(burns, spent, budget, now)
    if meets is None:
        return f"{rate}; done before the line."
    margin_s = max(burn.doubt for burn in burns) * (meets - now).total_seconds()
    when = f"{meets:%H:%M} UTC" if meets.date() == now.date() else f"{day(meets)}, {meets:%H:%M} UTC"
    return f"{rate}; the line is met at {when} (± {max(1, round(margin_s / 60))} min)."
