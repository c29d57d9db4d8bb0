"""Jobs and their evaluations as the API returns them; search and filters. Times are RFC 3339 in UTC."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Literal

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from pydantic import BaseModel, Field

from webapp.accounts.models import Project
from webapp.api.paging import Page, newest_first
from webapp.api.problems import ApiRefused
from webapp.api.schemas import Shape, Usd, first_name_of
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import FILTERS, TERMINAL, Observed
from webapp.jobs.billing.bill_panel import job_cap
from webapp.jobs.billing.cost_csv import prices_of
from webapp.jobs.list.run_table import FIRST, find_jobs
from webapp.jobs.list.search_query import NotUnderstood, parse
from webapp.jobs.models import Event, EventKind, Job
from webapp.jobs.queries import job_list
from webapp.jobs.reasons import look_of_job, reason_in_words
from webapp.jobs.scores import score_of
from webapp.money.amounts import Prices


class ScoreShape(Shape):
    """What a training is judged by."""

    name: str = Field(description="return, loss, …")
    higher_is_better: bool
    decimals: int = Field(description="So many are shown to people.")


class JobShape(Shape):
    """A job: its settings, its state, and its latest figures."""

    id: str
    project: str
    name: str
    url: str = Field(description="Its page.")
    state: str = Field(description="queued, starting, running, recovering, draining, paused, succeeded, …")
    state_words: str
    reason_code: str
    reason: str = Field(description="Why it is in this state.")
    wanted: Literal["run", "paused", "cancelled"]
    since: datetime
    over: bool
    money: Prices = Field(description="Whether its money is real.")
    subject: str = Field(description="What it learns: an environment, a data set.")
    environment: str = first_name_of("subject")
    algorithm: str
    platform: str
    seed: int
    tags: list[str]
    groups: list[str]
    note: str
    archived_at: datetime | None = Field(description="Since when it is hidden from lists.")
    actors_least: int | None = Field(description="Bounds set since the launch; null: none.")
    actors_most: int | None
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    round_no: int
    total_progress: int = Field(
        description="In `progress_unit`; data that is learned from again counts once."
    )
    env_steps: int = first_name_of("total_progress")
    progress_unit: str = Field(description="steps, samples, …")
    actor_name: str = Field(description="What its kind of training calls an actor: actor, function, …")
    round_name: str = Field(description="What its kind of training calls a round: round, epoch, …")
    actors: int
    score: ScoreShape = Field(description="What the next three figures are.")
    leading_score: float | None = Field(
        description="The score that pages show: the evaluated one, else that of training."
    )
    scored_by: Literal["evaluation", "training"] | None = Field(
        description="What `leading_score` is of; null: there is none yet."
    )
    training_score: float | None = Field(
        description="Of the last round that had one, while it explored and learned."
    )
    evaluated_score: float | None = Field(description="Of the last evaluation, without exploration.")
    episode_return_mean: float | None = first_name_of("training_score")
    evaluation_return_mean: float | None = first_name_of("evaluated_score")
    platform_s: float = Field(description="Seconds of the platform's own time, which may be simulated.")
    spent_usd: Usd
    reserved_usd: Usd
    limit_usd: Usd = Field(description="The job's own limit.")
    free_usd: Usd = Field(
        description="What it may still spend: under its own limit and all budgets above it."
    )
    cap_usd: Usd = Field(
        description="The most that it may cost in all, under its limit and all budgets above."
    )
    last_event: int


class EvaluationShape(BaseModel):
    """An evaluation. Those that a resume repeated are left out."""

    round_no: int
    total_progress: int
    env_steps: int = first_name_of("total_progress")
    evaluated_score: float | None = Field(description="The job's `score` says which.")
    return_mean: float | None = first_name_of("evaluated_score")
    return_std: float | None
    episode_returns: list[float | None]


def serialize_job(job: Job) -> JobShape:
    """The job in the form of the API, with the figures of its page."""
    training, account = job.spec["training"], job.account
    spent = account.spent_picodollars + account.overrun_picodollars
    slug, score, cap = job.project.slug, score_of(job), job_cap(job)
    return JobShape.of(
        job,
        project=slug,
        url=settings.STARLING_BASE_URL + reverse("jobs:detail", args=[slug, job.pk]),
        state=job.observed,
        state_words=look_of_job(job).word,
        reason=reason_in_words(job),
        wanted=job.desired,
        over=job.observed in TERMINAL,
        money=prices_of(job),
        subject=job.training_facts.subject,
        algorithm=job.training_facts.method,
        platform=job.spec["platform"]["kind"],
        seed=training["seed"],
        progress_unit=job.declaration.progress_unit,
        actor_name=job.declaration.actor_name,
        round_name=job.declaration.round_name,
        score=ScoreShape.of(job.declaration.score),
        leading_score=score.value,
        scored_by=score.basis or None,
        tags=sorted(tag.name for tag in job.tags.all()),
        groups=sorted(group.name for group in job.groups.all()),
        created_by=job.created_by.email,
        spent_usd=spent,
        reserved_usd=account.reserved_picodollars,
        limit_usd=account.limit_picodollars,
        free_usd=cap.free,
        cap_usd=cap.total,
        last_event=job.last_seq,
    )


def evaluations_of(job: Job) -> list[EvaluationShape]:
    """The job's evaluations by round, from its events."""
    kinds = (EventKind.EVALUATION, EventKind.RESUMED)
    rows = Event.objects.filter(job=job, kind__in=kinds, seq__lte=job.last_seq).order_by("seq")
    by_round: dict[int, EvaluationShape] = {}
    for kind, payload in rows.values_list("kind", "payload").iterator(chunk_size=500):
        if kind == EventKind.EVALUATION:
            by_round[payload["round_no"]] = EvaluationShape.model_validate(
                {
                    "round_no": payload["round_no"],
                    "total_progress": payload["total_env_steps"],
                    "evaluated_score": payload["return_mean"],
                    "return_std": payload.get("return_std"),
                    "episode_returns": payload.get("episode_returns") or [],
                }
            )
        else:
            by_round = {known: row for known, row in by_round.items() if known <= payload["from_round"]}
    return [by_round[number] for number in sorted(by_round)]


def etag_of(shape: BaseModel) -> str:
    """The job's ETag. It changes with any field of the response."""
    return f'"{hashlib.sha256(shape.model_dump_json().encode()).hexdigest()[:24]}"'


def search_jobs(
    project: Project, question: str, state: str, lookups: dict[str, str], cursor: str, limit: int
) -> Page[JobShape]:
    """A page of the jobs in the state that match the query and all lookups with a value, newest first."""
    lookups = {path: value for path, value in lookups.items() if value}
    states = Q(observed__in=_states(state)) if state else Q()
    rows = job_list(project).filter(_matching_query(project, question), states, **lookups)
    rows = rows.select_related("project")
    return newest_first(
        rows.prefetch_related("tags", "groups", "account__budgets"),
        "created_at",
        cursor,
        limit,
        serialize_job,
    )


def _matching_query(project: Project, question: str) -> Q:
    """Jobs that match the query, as in the list of jobs. ApiRefused if the query is invalid."""
    if not question.strip():
        return Q()
    try:
        terms = parse(question)
    except NotUnderstood as refusal:
        raise ApiRefused(
            422,
            "question",
            "No jobs were looked for.",
            str(refusal),
            "Simplify the query, or write it differently.",
        ) from None
    matching = find_jobs(project, terms, FIRST, SYSTEM_CLOCK.now())
    return Q(pk__in=matching.order_by().values("pk"))


def _states(value: str) -> Any:
    if value in FILTERS:
        return FILTERS[value][1]
    if value in Observed.values:
        return (value,)
    known = ", ".join(dict.fromkeys([*FILTERS, *Observed.values]))
    raise ApiRefused(
        422, "state", "No jobs were looked for.", f"There is no state “{value}”.", f"Use one of: {known}."
    )
