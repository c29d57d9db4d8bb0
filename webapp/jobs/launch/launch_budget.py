"""The money a job needs before it may begin: room for the worst case of its first round, and its expected
cost, which the budgets above then hold for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from typing import Any

from django.db.models import Q

from cloud.money.billing.price_book import PICODOLLARS_PER_USD, PriceError, UnknownSku
from cloud.timing.forecast import NoForecast, first_round_picodollars
from webapp.accounts.models import Project
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.forecasts import learned_forecast
from webapp.jobs.models import Job, JobGroup, Tag
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import BUDGET_DECIMALS, display_least_usd, picodollars
from webapp.money.models import AtLine, Budget, BudgetScope
from webapp.money.queries import limits_of

BUDGET = "budget_usd"


@dataclass(frozen=True)
class Needs:
    """Picodollars. `expected` is the forecast's p90, or the whole budget if there is no forecast."""

    least: int
    expected: int


def needs_of(
    project: Project, spec: JobSpec, *, whole_budget: bool = False, actors: int | None = None
) -> Needs:
    """Return what the job needs.

    The forecast (about a second) is only computed if a budget above might hold it and `whole_budget` is
    false.
    """
    limit, least = picodollars(spec.budget_usd), least_of(spec, actors)
    if isinstance(least, str):  # the run reports this; nothing can be reserved before
        return Needs(0, limit)
    above = Budget.objects.filter(Q(project=project) | Q(project=None), closed_at=None)
    above = above.exclude(~Q(group__name=spec.group), scope=BudgetScope.GROUP)
    expected = _expected(project, spec, limit) if above.exists() and not whole_budget else limit
    return Needs(least, min(limit, max(least, expected)))


def least_of(spec: JobSpec, actors: int | None = None) -> int | str:
    """Return what must be free before a run's first round; a sentence if something has no price.

    `actors` is the job's last number of actors, if it resumes.
    """
    try:
        return first_round_picodollars(spec.training, spec.platform, actors)
    except (UnknownSku, PriceError) as error:
        return str(error)


def free_for_next_round(job: Job, now: datetime) -> int:
    """Return what is free for a job that its budget stopped; 0 if its next round does not fit in it."""
    account = job.account
    free = min(limit.room for limit in limits_of(account.pk, AtLine.DRAIN, now))
    if (
        free <= 0 or account.frozen
    ):  # reading the spec takes longer, and most stopped jobs are asked each half minute
        return 0
    least = least_of(job.parsed_spec(), job.actors)
    return free if isinstance(least, int) and free >= least else 0


def _expected(project: Project, spec: JobSpec, limit: int) -> int:
    try:
        forecast = learned_forecast(project, _any_of_its_seeds(spec))
        return min(limit, round(forecast.dollars.p90 * PICODOLLARS_PER_USD))
    except NoForecast:
        return limit


def _any_of_its_seeds(spec: JobSpec) -> JobSpec:
    """Return the spec without what differs between seeds: they share one forecast."""
    training = spec.training.model_copy(update={"seed": 0})
    return spec.model_copy(update={"training": training, "tags": (), "group": ""})


def part_of(budget_usd: Decimal, runs: int) -> Decimal:
    """Return each run's part of a budget for all of them together, rounded down: the sum is never more."""
    return (budget_usd / runs).quantize(Decimal(1).scaleb(-BUDGET_DECIMALS), rounding=ROUND_DOWN)


def too_little_for_seeds(spec: JobSpec, count: int) -> list[SpecProblem]:
    """Return the problem if a seed's part of the budget cannot pay its first round."""
    part, least = part_of(spec.budget_usd, count), least_of(spec)
    needs = max(1, least if isinstance(least, int) else 0)
    if needs <= picodollars(part):
        return []
    sentence = (
        f"Budget ({BUDGET}): ${spec.budget_usd} is too little for {count} seeds, which share it evenly. It must"
        f" be at least {display_least_usd(count * needs)}, so that each can begin its first {spec.training.round_name}."
        " Raise it, or ask for fewer seeds."
    )
    return [SpecProblem(BUDGET, sentence)]


def too_little(spec: JobSpec, needs: Needs) -> list[SpecProblem]:
    """Return the problem if the job's own budget cannot pay its first round."""
    if needs.least <= picodollars(spec.budget_usd):
        return []
    sentence = (
        f"Budget ({BUDGET}) must be at least {display_least_usd(needs.least)}: so much may the first"
        f" {spec.training.round_name} cost at worst, and nothing begins unless that is free. Raise it, or ask for fewer"
        f" {spec.training.actor_name}s."
    )
    return [SpecProblem(BUDGET, sentence)]


def add_labels(job: Job, spec: JobSpec, now: Any) -> None:
    """Add the job's tags and group, created in its project if they are new."""
    for name in spec.tags:
        job.tags.add(Tag.objects.get_or_create(project_id=job.project_id, name=name)[0])
    if spec.group:
        made = {"created_at": now}
        group, _ = JobGroup.objects.get_or_create(project_id=job.project_id, name=spec.group, defaults=made)
        job.groups.add(group)
