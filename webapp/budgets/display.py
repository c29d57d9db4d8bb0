"""A budget as pages show it: its figures, its state and its outlook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, F

from cloud.platforms.options import PLATFORMS
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import Pill, display_usd, format_day, format_moment, plural
from webapp.job_states import Observed
from webapp.jobs.billing.burn_rate import Burn, burns_of, meets_at
from webapp.jobs.models import Job
from webapp.jobs.reasons import STOPPED_BY_BUDGET
from webapp.money.budget_chain import headroom, period_end, period_start
from webapp.money.models import Account, AtLine, Budget, BudgetScope, Period
from webapp.money.queries import as_of, unreal_below

CLOUDS = {kind: options.place for kind, options in PLATFORMS.items()}
_STOPPED_SHOWN = 5
_LEAST_PASSED = timedelta(days=1)
_FURTHEST_DAYS = 365.0


@dataclass(frozen=True)
class BudgetSummary:
    """A budget with everything a page shows of it.

    `holds` counts the jobs that hold money in the budget. `outlook` is empty if no job is running. `stopped`
    lists jobs of the budget's own project only: a viewer of an installation-wide budget may not see every
    project. `unreal` names the money that is not charged ("simulated").
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
    state: Pill | None
    outlook: str
    at_line: str
    stopped: list[Job]
    unreal: str


def summarize_budget(budget: Budget, now: datetime) -> BudgetSummary:
    return summarize_budgets([budget], now)[0]


def summarize_budgets(budgets: Iterable[Budget], now: datetime) -> list[BudgetSummary]:
    """Return several budgets, with as many queries as one budget takes."""
    budgets = list(budgets)
    ids = [budget.pk for budget in budgets]
    unreal, below = unreal_below(ids), _below(ids)
    return [
        _summarize(as_of(budget, now), below[budget.pk], unreal.get(budget.pk, ""), now) for budget in budgets
    ]


@dataclass(frozen=True)
class PersonBudget:
    """The budget over one person's jobs in a project, in figures."""

    budget: Budget
    spent: int
    limit: int
    period: str
    unreal: str


def budgets_of_people(project: Project) -> dict[int, PersonBudget]:
    """By person, the project's budget over their jobs; of several the one with the least room."""
    now = SYSTEM_CLOCK.now()
    rows = Budget.objects.filter(project=project, scope=BudgetScope.USER, closed_at=None).order_by("pk")
    tightest = sorted((as_of(budget, now) for budget in rows), key=headroom, reverse=True)
    by_user = {budget.user_id: budget for budget in tightest if budget.user_id is not None}
    unreal = unreal_below([budget.pk for budget in by_user.values()])
    return {
        person: PersonBudget(
            budget=budget,
            spent=budget.spent_picodollars + budget.overrun_picodollars,
            limit=budget.limit_picodollars,
            period=period_words(budget),
            unreal=unreal.get(budget.pk, ""),
        )
        for person, budget in by_user.items()
    }


@dataclass
class _Below:
    """The jobs under a budget: how many hold money, which it stopped, how fast the others spend."""

    holds: int = 0
    stopped: list[Job] = field(default_factory=list)
    burns: list[Burn] = field(default_factory=list)


def _below(budget_ids: Sequence[int]) -> dict[int, _Below]:
    below = {budget_id: _Below() for budget_id in budget_ids}
    over = (Observed.SUCCEEDED, Observed.FAILED, Observed.CANCELLED, Observed.PAUSED)
    holding = Account.objects.filter(budgets__in=budget_ids, granted_picodollars__gt=0)
    counts = holding.exclude(job__observed__in=over).values_list("budgets").annotate(Count("pk"))
    for budget_id, count in counts.order_by("budgets"):
        below[budget_id].holds = count
    jobs = Job.objects.filter(account__budgets__in=budget_ids).annotate(budget_id=F("account__budgets"))
    for job in jobs.filter(STOPPED_BY_BUDGET).order_by("-since"):
        below[job.budget_id].stopped.append(job)
    # Simulated jobs run in virtual time, so they say nothing about the time of day.
    running = list(jobs.filter(observed=Observed.RUNNING, simulated=False).select_related("account"))
    burns = burns_of(running)
    for job in running:
        if job.pk in burns:
            below[job.budget_id].burns.append(burns[job.pk])
    return below


def _summarize(budget: Budget, below: _Below, unreal: str, now: datetime) -> BudgetSummary:
    spent = budget.spent_picodollars + budget.overrun_picodollars
    end = period_end(budget.period, now)
    words = period_words(budget)
    return BudgetSummary(
        budget=budget,
        counts=scope_words(budget),
        period=words if end is None else f"{words}, resets {format_day(end)}",
        spent=spent,
        reserved=budget.reserved_picodollars,
        free=headroom(budget),
        limit=budget.limit_picodollars,
        spent_and_reserved=min(100.0, 100 * (spent + budget.reserved_picodollars) / budget.limit_picodollars),
        holds=below.holds,
        state=_state(100 * spent / budget.limit_picodollars),
        outlook=_outlook(budget, below.burns, spent, now) or _pace(budget, spent, now),
        at_line=str(AtLine(budget.at_line).label),
        stopped=below.stopped[:_STOPPED_SHOWN] if budget.project_id else [],
        unreal=unreal,
    )


def _state(percent: float) -> Pill | None:
    """Return the pill of a budget from 80 % on; None below."""
    if percent >= 100:
        return Pill("At its limit", "budget", "sign-stop-fill")
    if percent >= 80:
        return Pill(f"{int(percent)} % spent", "warning", "exclamation-triangle-fill")
    return None


def _outlook(budget: Budget, burns: list[Burn], spent: int, now: datetime) -> str:
    if not burns:
        return ""
    rate = f"{plural(len(burns), 'job')} at {display_usd(sum(burn.hourly for burn in burns))} an hour"
    meets = meets_at(burns, spent, budget, now)
    if meets is None:
        return f"{rate}; done before the limit."
    in_s = (meets - now).total_seconds()
    margin_s = max(burn.margin_s(in_s) for burn in burns)
    when = format_moment(meets, today=now.date())
    return f"{rate}; the limit is met at {when} (± {max(1, round(margin_s / 60))} min)."


def _pace(budget: Budget, spent: int, now: datetime) -> str:
    """Return when the budget runs out at the pace of its period so far; empty if it does not, or too soon to say."""
    since = max(period_start(budget.period, now), budget.created_at)
    passed = now - since
    if not 0 < spent < budget.limit_picodollars or passed < _LEAST_PASSED:
        return ""
    left = budget.limit_picodollars - spent
    days = left / (spent / (passed / timedelta(days=1)))
    end = period_end(budget.period, now)
    if days > _FURTHEST_DAYS or (end is not None and now + timedelta(days=days) >= end):
        return ""
    return f"At the pace so far it runs out on {format_day(now + timedelta(days=days))}."


def scope_words(budget: Budget) -> str:
    """Return what the budget counts: "all jobs of this project", "jobs tagged sweep"."""
    match budget.scope:
        case BudgetScope.EVERYTHING:
            return "all jobs of this installation"
        case BudgetScope.PROJECT:
            return "all jobs of this project"
        case BudgetScope.USER:
            return f"jobs of {budget.user}"
        case BudgetScope.CLOUD:
            return f"jobs on {CLOUDS.get(budget.cloud, budget.cloud)}"
        case BudgetScope.TAG:
            return f"jobs tagged {budget.tag}"
    return "jobs of this group" if budget.name == str(budget.group) else f"jobs of the group {budget.group}"


def period_words(budget: Budget) -> str:
    return {Period.MONTHLY: "a month", Period.WEEKLY: "a week"}.get(Period(budget.period), "in total")
