"""The overview's lists of running and recent jobs, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, QuerySet, When

from webapp.formatting import Pill, format_rough_duration, format_score
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.charts.sparklines import polyline, scores_of
from webapp.jobs.list.seed_rows import Seeds, fold_seeds
from webapp.jobs.models import Job
from webapp.jobs.queries import TRAINING_KIND
from webapp.jobs.reasons import look_of_job, reason_in_words, stopped_by_budget

SHOWN = 8
RECENT = 6
LOOKED_AT = 200
"""So many ended jobs are folded by their groups."""


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
    scores = scores_of(jobs)
    return [_running(job, scores[job.pk]) for job in jobs]


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


@dataclass(frozen=True)
class Recent:
    """A job that ended or is paused. `step` names the address of the next step, `step_words` describes it."""

    job: Job
    state: Pill
    reason: str
    spent: int
    step: str
    step_words: str
    more_seeds: int = 0
    """How many other seeds of its group ended; the row includes them."""


_RAISE_BUDGET = "jobs:detail", "Raise budget"
_DOWNLOAD = "jobs:checkpoints"
_STEPS: dict[str, tuple[str, str]] = {
    Observed.FAILED: ("jobs:logs", "Read log"),
    Observed.CANCELLED: ("jobs:detail", "See charts"),
    Observed.PAUSED: ("jobs:detail", "Resume"),
}


def _next_step(job: Job) -> tuple[str, str]:
    if job.observed == Observed.SUCCEEDED:
        return _DOWNLOAD, f"Download {job.declaration.learned}"
    return _RAISE_BUDGET if stopped_by_budget(job) else _STEPS[job.observed]


def recent(project: Any) -> list[Recent]:
    """What ended or was stopped last."""
    ended = Job.objects.filter(project=project, archived_at=None, observed__in=(*TERMINAL, Observed.PAUSED))
    newest = ended.order_by("-since")
    shown = (fold_seeds(project, newest.values_list("pk", flat=True)[:LOOKED_AT]) or [])[:RECENT]
    others = {one.job_ids[0]: len(one.job_ids) - 1 for one in shown if isinstance(one, Seeds)}
    if shown:
        newest = newest.filter(pk__in=[one.job_ids[0] if isinstance(one, Seeds) else one for one in shown])
    jobs = newest.select_related("account").defer("spec", "summary", "note")
    rows = []
    for job in jobs.annotate(training_kind=TRAINING_KIND)[:RECENT]:
        step, words = _next_step(job)
        spent = job.account.spent_picodollars + job.account.overrun_picodollars
        seeds = others.get(job.pk, 0)
        rows.append(Recent(job, look_of_job(job), reason_in_words(job), spent, step, words, seeds))
    return rows
