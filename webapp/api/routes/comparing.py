"""Comparisons of runs: groups, comparisons, more seeds, and sweeps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from django.conf import settings
from django.db.models import Count
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query

from training.statistics import Interval
from webapp.accounts.models import Project
from webapp.api.auth import Token
from webapp.api.problems import Refused, spec_refused
from webapp.api.router import ApiRouter, EditorsJob, EditorsProject, Person, ViewersProject
from webapp.api.routes.jobs import Key
from webapp.api.schemas.comparing import (
    AgainstShape,
    ComparisonShape,
    DifferenceShape,
    GettingShape,
    GoalShape,
    GroupShape,
    IntervalShape,
    NewSeeds,
    NewSweep,
    SideShape,
)
from webapp.comparing import text as comparing_text
from webapp.comparing.curves import Getting, curves_of, getting_to, goal_of
from webapp.comparing.figures import SideFigures, compared, differences
from webapp.comparing.groups import MOST_SIDES, picked
from webapp.comparing.sweeps import Axis, Sweep, SweepRefused, launch_sweep
from webapp.jobs.models import JobGroup
from webapp.jobs.seed_groups import more_seeds
from webapp.jobs.services import SpecRefused
from webapp.money.amounts import exact_usd

router = ApiRouter(tags=["comparing"])
_GROUPS_TOLD = 200

_Of = Annotated[
    list[Annotated[str, Query(max_length=40, pattern=r"^[a-z0-9_]*$")]],
    Query(min_length=1, max_length=MOST_SIDES, description="Ids of jobs, and keys of groups."),
]


@router.get("/projects/{slug}/groups", response=list[GroupShape], summary="Groups of jobs, newest first")
def list_groups(project: ViewersProject) -> list[GroupShape]:
    """At most 200. What is in one: jobs with `group` as its name."""
    rows = (
        JobGroup.objects.filter(project=project).annotate(runs=Count("jobs")).order_by("-created_at", "-pk")
    )
    return [_group(project, one, one.runs) for one in rows[:_GROUPS_TOLD]]


@router.get("/projects/{slug}/comparison", response=ComparisonShape, summary="Jobs and groups compared")
def get_comparison(project: ViewersProject, of: _Of) -> ComparisonShape:
    """Interquartile means with intervals, which side is better, how certain that is, and the seeds for a decision."""
    chosen = picked(project, of)
    curves = curves_of(chosen.jobs)
    found, goal = compared(chosen, curves), goal_of(chosen.sides, curves)
    return ComparisonShape(
        scored_by=found.scored_by,
        goal=None if goal is None else GoalShape(value=goal.value, words=goal.words),
        sides=[
            _side(one, None if goal is None else getting_to(goal, one.side, curves)) for one in found.sides
        ],
        verdicts=comparing_text.verdicts(found) if found.sides else [],
        differences=[
            DifferenceShape(path=one.path, values=list(one.values)) for one in differences(chosen.sides)
        ]
        if len(chosen.sides) > 1
        else [],
        left_out=list(chosen.left_out),
    )


@router.post(
    "/projects/{slug}/jobs/{job_id}/seeds",
    auth=Token("jobs"),
    response={201: GroupShape},
    summary="Launch more seeds of a job",
)
def add_seeds(job: EditorsJob, person: Person, seeds: NewSeeds, idempotency_key: Key = "") -> GroupShape:
    """Seeds that no job of its group has. A job without a group gets one."""
    key = f"{idempotency_key[:60]}:{job.pk}" if idempotency_key else None
    try:
        group = more_seeds(user=person, like=job, count=seeds.count, key=key)
    except SpecRefused as refusal:
        raise spec_refused(refusal.problems) from None
    return _group(job.project, group, group.jobs.count())


@router.post(
    "/projects/{slug}/sweeps", auth=Token("jobs"), response={201: GroupShape}, summary="Launch a sweep"
)
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
        raise Refused(422, "sweep", "Nothing was launched.", why, "Change the sweep as it says.") from None
    except SpecRefused as refusal:
        raise spec_refused(refusal.problems) from None
    shape = _group(project, group, group.jobs.count())
    response["Location"] = shape.url
    return shape


def _group(project: Project, group: JobGroup, runs: int) -> GroupShape:
    address = reverse("comparing:group", args=[project.slug, group.pk])
    return GroupShape(
        id=group.pk,
        key=f"group_{group.pk}",
        name=group.name,
        runs=runs,
        created_at=group.created_at,
        url=settings.STARLING_BASE_URL + address,
    )


def _side(one: SideFigures, getting: Getting | None) -> SideShape:
    against = one.against
    return SideShape(
        key=one.side.key,
        name=one.side.name,
        jobs=[job.pk for job in one.side.jobs],
        scores=one.scores.tolist(),
        iqm=None if one.iqm is None else _interval(one.iqm.value, one.interval),
        cost_usd=exact_usd(one.cost),
        cost_a_run_usd=None if one.cost_a_run is None else exact_usd(one.cost_a_run),
        time_a_run_s=one.time_s,
        best=one.leads,
        efficient=one.efficient,
        against_best=None
        if against is None
        else AgainstShape(
            won=against.won,
            pairs=against.pairs,
            better=_interval(against.won / against.pairs, against.better),
            p=against.p,
            told_apart=against.is_significant,
            more_seeds=against.more,
            more_usd=None if one.more_cost is None else exact_usd(one.more_cost),
        ),
        getting=None if getting is None else GettingShape(**asdict(getting)),
    )


def _interval(value: float, found: Interval | None) -> IntervalShape:
    low, high = (None, None) if found is None else (found.low, found.high)
    return IntervalShape(value=value, low=low, high=high)
