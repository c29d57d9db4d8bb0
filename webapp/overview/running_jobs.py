"""The overview's lists of running and recent jobs, in a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Q, QuerySet, When

from webapp.formatting import format_rough_duration, format_score, svg_points
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.headings import TRAINING_KIND
from webapp.jobs.models import Job, Round
from webapp.jobs.reasons import look_of_job, reason_in_words, stopped_by_budget
from webapp.tones import Pill

WIDTH, HEIGHT = 96, 24
POINTS = 32


def sampled(last: int) -> list[int]:
    """Numbers of rounds from the first to the last, as many as a small line has room for."""
    if last <= POINTS:
        return list(range(1, last + 1))
    return sorted({1 + round(at * (last - 1) / (POINTS - 1)) for at in range(POINTS)})


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """The points of an SVG polyline that fills the box; empty for fewer than two."""
    if len(points) < 2:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, bottom = min(xs), min(ys)
    wide, high = max(xs) - left or 1, max(ys) - bottom or 1
    inner = HEIGHT - 4
    return svg_points(
        (WIDTH * (x - left) / wide, HEIGHT - 2 - inner * (y - bottom) / high) for x, y in points
    )


SHOWN = 8
RECENT = 6


@dataclass(frozen=True)
class Running:
    """One running job. `left`: its remaining time as text; empty if its spec does not end it by steps."""

    job: Job
    state: Pill
    reason: str
    line: str
    line_words: str
    spent: int
    limit: int
    free: int
    spent_and_reserved: float
    left: str


def active(project: Any) -> QuerySet[Job]:
    return Job.objects.filter(project=project, observed__in=ACTIVE, archived_at=None)


def running(project: Any) -> list[Running]:
    """Active jobs: those with progress first, then the newest."""
    moving = Case(When(observed=Observed.RUNNING, round_no__gt=0, then=0), default=1)
    rows = active(project).select_related("account").defer("summary", "note")
    jobs = list(rows.order_by(moving, "-created_at")[:SHOWN])
    returns = _returns(jobs)
    return [_running(job, returns[job.pk]) for job in jobs]


def _running(job: Job, returns: Sequence[tuple[int, float]]) -> Running:
    account = job.account
    spent, limit = account.spent_picodollars + account.overrun_picodollars, account.limit_picodollars
    score = job.declaration.score
    words = (
        f"{score.name.capitalize()} from {format_score(returns[0][1], score.decimals)}"
        f" to {format_score(returns[-1][1], score.decimals)}"
        if returns
        else f"No {score.name} yet"
    )
    return Running(
        job=job,
        state=look_of_job(job),
        reason=reason_in_words(job),
        line=polyline(returns),
        line_words=words,
        spent=spent,
        limit=limit,
        free=max(0, limit - spent - account.reserved_picodollars),
        spent_and_reserved=min(100.0, 100 * (spent + account.reserved_picodollars) / limit),
        left=_left(job),
    )


def _left(job: Job) -> str:
    wanted = job.training_facts.progress_limit
    if not wanted or not job.env_steps or not job.platform_s or job.observed != Observed.RUNNING:
        return ""
    seconds = job.platform_s * max(0, wanted - job.env_steps) / job.env_steps
    return format_rough_duration(seconds)


def _returns(jobs: Sequence[Job]) -> dict[str, list[tuple[int, float]]]:
    """Number and mean return of a few rounds of each job, from its first to its last."""
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    wanted = Q()
    for job in jobs:
        if job.round_no:
            wanted |= Q(job_id=job.pk, round_no__in=sampled(job.round_no))
    if not wanted:
        return found
    rows = Round.objects.filter(wanted, report__episode_return_mean__isnull=False).order_by("round_no")
    for job_id, round_no, mean in rows.values_list("job_id", "round_no", "report__episode_return_mean"):
        if mean is not None:
            found[job_id].append((round_no, mean))
    return found


@dataclass(frozen=True)
class Recent:
    """A job that ended or is paused. `step` names the address of the next step, `step_words` describes it."""

    job: Job
    state: Pill
    reason: str
    spent: int
    step: str
    step_words: str


_RAISE_BUDGET = "jobs:detail", "Raise budget"
_STEPS: dict[str, tuple[str, str]] = {
    Observed.FAILED: ("jobs:logs", "Read log"),
    Observed.SUCCEEDED: ("jobs:checkpoints", "Download policy"),
    Observed.CANCELLED: ("jobs:detail", "See charts"),
    Observed.PAUSED: ("jobs:detail", "Resume"),
}


def recent(project: Any) -> list[Recent]:
    """What ended or was stopped last."""
    jobs = (
        Job.objects.filter(project=project, archived_at=None, observed__in=(*TERMINAL, Observed.PAUSED))
        .select_related("account")
        .defer("spec", "summary", "note")
        .annotate(training_kind=TRAINING_KIND)
        .order_by("-since")[:RECENT]
    )
    rows = []
    for job in jobs:
        step, words = _RAISE_BUDGET if stopped_by_budget(job) else _STEPS[job.observed]
        spent = job.account.spent_picodollars + job.account.overrun_picodollars
        rows.append(Recent(job, look_of_job(job), reason_in_words(job), spent, step, words))
    return rows
