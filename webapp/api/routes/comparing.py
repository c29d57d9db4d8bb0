"""Comparisons of runs: groups, comparisons, more seeds, and sweeps."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from django.conf import settings
from django.db.models import Count
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query
from pydantic import BaseModel, Field, StringConstraints

from training.statistics.few_seeds import Interval
from webapp.accounts.models import Project
from webapp.api.auth import Token
from webapp.api.idempotency import say_if_replayed
from webapp.api.job_serialization import ScoreShape
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, EditorsJob, EditorsProject, Person, ViewersProject
from webapp.api.routes.jobs import Key
from webapp.api.schemas import IntervalShape, Name, Request, Shape, Usd
from webapp.comparing import text as comparing_text
from webapp.comparing.curves import Getting, Goal, curves_of, getting_to, goal_of
from webapp.comparing.figures import SideFigures, compared, differences
from webapp.comparing.groups import MOST_SIDES, picked
from webapp.comparing.sweeps import MOST_RUNS, Axis, Sweep, SweepRefused, launch_sweep
from webapp.jobs.models import JobGroup
from webapp.jobs.seed_groups import MOST_SEEDS, launch_seeds, more_seeds
from webapp.jobs.spec import JobSpec

router = ApiRouter(tags=["comparing"])
_MOST_GROUPS = 200

_Of = Annotated[
    list[Annotated[str, Query(max_length=40, pattern=r"^[a-z0-9_]*$")]],
    Query(min_length=1, max_length=MOST_SIDES, description="Ids of jobs, and keys of groups."),
]


_Text = Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[^\x00]*$")]


class GroupShape(Shape):
    """Jobs that belong together: the seeds of one setting, the points of a sweep."""

    id: int
    key: str = Field(description="Names it in a comparison, beside the ids of jobs.")
    name: str
    runs: int
    created_at: datetime
    url: str = Field(description="Its page.")


class AgainstShape(BaseModel):
    """A side compared with the best one."""

    won: float = Field(
        description="In so many pairs a run of the best side beats one of this; ties count half."
    )
    pairs: int = Field(description="Each run of the best side with each of this.")
    better: IntervalShape = Field(description="The share of pairs that were won.")
    p: float = Field(description="By permutation of seeds.")
    told_apart: bool
    more_seeds: int | None = Field(description="That each side needs for a decision; null: more than 50.")
    more_usd: Usd | None = Field(description="What those would cost on this side, about.")


class SideShape(BaseModel):
    """A job, a group, or the runs of a group with the same settings."""

    key: str
    name: str
    jobs: list[str]
    scores: list[float] = Field(description="One a run that has any.")
    iqm: IntervalShape | None = Field(description="Of the scores.")
    cost_usd: Usd
    cost_a_run_usd: Usd | None = Field(description="Of runs that have started; null: none has.")
    time_a_run_s: float | None = Field(description="Of runs that have started; null: not known.")
    best: bool
    efficient: bool = Field(
        description="Significantly better than each other side: in score, dollars or time."
    )
    against_best: AgainstShape | None
    getting: Getting | None


class DifferenceShape(Shape):
    path: str
    values: list[str] = Field(description="By side.")


class ComparisonShape(BaseModel):
    score: ScoreShape | None = Field(description="Null: there is no side.")
    scored_by: Literal["evaluation", "training"] = Field(
        description="What all scores are of: evaluations, if each run that has begun was evaluated."
    )
    goal: Goal | None = Field(description="A score to reach, to compare the cost of reaching it.")
    sides: list[SideShape]
    verdicts: list[str]
    differences: list[DifferenceShape]
    left_out: list[str]


class NewSeeds(Request):
    count: int = Field(ge=1, le=MOST_SEEDS)


class NewSeedGroup(Request):
    """The spec's budget is for all runs together: each gets the same part of it."""

    spec: JobSpec
    count: int = Field(ge=2, le=MOST_SEEDS)


class NewSweep(Request):
    """`fields`: by path, values such as "0.001, 0.0003" or, by chance, a range such as "1e-4 .. 1e-2"."""

    base: JobSpec
    name: Name
    fields: dict[_Text, _Text] = Field(min_length=1, max_length=5)
    way: Literal["grid", "random"] = "grid"
    points: int = Field(8, ge=1, le=MOST_RUNS, description="Drawn by chance; a grid has all of them.")
    seeds: int = Field(1, ge=1, le=MOST_SEEDS)
    limit_usd: Decimal = Field(gt=0, le=1_000_000, decimal_places=6, description="For all runs together.")


@router.get("/projects/{slug}/groups", summary="Groups of jobs, newest first")
def list_groups(project: ViewersProject) -> list[GroupShape]:
    """At most 200. What is in one: jobs with `group` as its name."""
    rows = (
        JobGroup.objects.filter(project=project).annotate(runs=Count("jobs")).order_by("-created_at", "-pk")
    )
    return [_group(project, row, row.runs) for row in rows[:_MOST_GROUPS]]


@router.get("/projects/{slug}/comparison", summary="Jobs and groups compared")
def get_comparison(project: ViewersProject, of: _Of) -> ComparisonShape:
    """Interquartile means with intervals, which side is better, how certain that is, and the seeds for a decision."""
    chosen = picked(project, of)
    curves = curves_of(chosen.jobs)
    result, goal = compared(chosen, curves), goal_of(chosen.sides, curves)
    return ComparisonShape(
        score=ScoreShape.of(result.score) if result.sides else None,
        scored_by=result.scored_by,
        goal=goal,
        sides=[
            _side(one, None if goal is None else getting_to(goal, one.side, curves)) for one in result.sides
        ],
        verdicts=comparing_text.verdicts(result) if result.sides else [],
        differences=[DifferenceShape.of(difference) for difference in differences(chosen.sides)]
        if len(chosen.sides) > 1
        else [],
        left_out=list(chosen.left_out),
    )


@router.post(
    "/projects/{slug}/jobs/{job_id}/seeds",
    auth=Token("jobs"),
    response=201,
    summary="Launch more seeds of a job",
)
def add_seeds(
    job: EditorsJob, person: Person, response: HttpResponse, seeds: NewSeeds, idempotency_key: Key = ""
) -> GroupShape:
    """Seeds that no job of its group has. A job without a group gets one."""
    key = f"{idempotency_key[:60]}:{job.pk}" if idempotency_key else None
    group = more_seeds(user=person, like=job, count=seeds.count, key=key)
    say_if_replayed(response, group)
    return _group(job.project, group, group.jobs.count())


@router.post(
    "/projects/{slug}/seeds", auth=Token("jobs"), response=201, summary="Launch seeds of a spec as one group"
)
def create_seeds(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    seeds: NewSeedGroup,
    idempotency_key: Key = "",
) -> GroupShape:
    """From the spec's seed on, all of them or none. The same Idempotency-Key gives the same group again."""
    key = idempotency_key[:60] or None
    group = launch_seeds(project=project, user=person, spec=seeds.spec, count=seeds.count, key=key)
    shape = _group(project, group, group.jobs.count())
    response["Location"] = shape.url
    say_if_replayed(response, group)
    return shape


@router.post("/projects/{slug}/sweeps", auth=Token("jobs"), response=201, summary="Launch a sweep")
def create_sweep(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    sweep: NewSweep,
    idempotency_key: Key = "",
) -> GroupShape:
    """All of its runs or none, below one budget. The same Idempotency-Key gives the same sweep again."""
    try:
        planned = Sweep(
            base=sweep.base,
            name=sweep.name,
            axes=tuple(Axis.read(path, text) for path, text in sweep.fields.items()),
            way=sweep.way,
            points=sweep.points,
            seeds=sweep.seeds,
            limit_usd=sweep.limit_usd,
        )
        key = idempotency_key[:60] or None
        group = launch_sweep(project=project, user=person, sweep=planned, key=key)
    except SweepRefused as refusal:
        why = str(refusal)
        raise ApiRefused(422, "sweep", "Nothing was launched.", why, "Change the sweep as it says.") from None
    shape = _group(project, group, group.jobs.count())
    response["Location"] = shape.url
    say_if_replayed(response, group)
    return shape


def _group(project: Project, group: JobGroup, runs: int) -> GroupShape:
    address = reverse("comparing:group", args=[project.slug, group.pk])
    return GroupShape.of(group, key=f"group_{group.pk}", runs=runs, url=settings.STARLING_BASE_URL + address)


def _side(figures: SideFigures, getting: Getting | None) -> SideShape:
    against = figures.against
    return SideShape(
        key=figures.side.key,
        name=figures.side.name,
        jobs=[job.pk for job in figures.side.jobs],
        scores=figures.scores.tolist(),
        iqm=None if figures.iqm is None else _interval(figures.iqm.value, figures.interval),
        cost_usd=figures.cost,
        cost_a_run_usd=figures.cost_a_run,
        time_a_run_s=figures.time_s,
        best=figures.leads,
        efficient=figures.efficient,
        against_best=None
        if against is None
        else AgainstShape(
            won=against.won,
            pairs=against.pairs,
            better=_interval(against.won / against.pairs, against.better),
            p=against.p,
            told_apart=against.is_significant,
            more_seeds=against.more,
            more_usd=figures.more_cost,
        ),
        getting=getting,
    )


def _interval(value: float, interval: Interval | None) -> IntervalShape:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return IntervalShape(value=value, low=low, high=high)
