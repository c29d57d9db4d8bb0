"""Jobs and their evaluations as the API returns them; search and filters."""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from pydantic import BaseModel

from webapp.accounts.models import Project
from webapp.api.paging import Page, newest_first
from webapp.api.problems import Refused
from webapp.api.schemas.jobs import EvaluationShape, JobShape
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import FILTERS, TERMINAL, Observed
from webapp.jobs.billing.cost_csv import prices_of
from webapp.jobs.list.run_table import FIRST, find_jobs
from webapp.jobs.list.search_query import NotUnderstood, parse
from webapp.jobs.models import Event, EventKind, Job
from webapp.jobs.queries import job_list
from webapp.jobs.reasons import look_of_job, reason_in_words
from webapp.money.amounts import exact_usd


def serialize_job(job: Job) -> JobShape:
    """The job in the form of the API, with the figures of its page."""
    training, account = job.spec["training"], job.account
    spent = account.spent_picodollars + account.overrun_picodollars
    free = max(0, account.limit_picodollars - spent - account.reserved_picodollars)
    slug = job.project.slug
    return JobShape(
        id=job.pk,
        project=slug,
        name=job.name,
        url=settings.STARLING_BASE_URL + reverse("jobs:detail", args=[slug, job.pk]),
        state=job.observed,
        state_words=look_of_job(job).word,
        reason_code=job.reason_code,
        reason=reason_in_words(job),
        wanted=job.desired,
        since=job.since,
        over=job.observed in TERMINAL,
        money=prices_of(job),
        environment=job.training_facts.subject,
        algorithm=job.training_facts.method,
        platform=job.spec["platform"]["kind"],
        seed=training["seed"],
        tags=sorted(tag.name for tag in job.tags.all()),
        groups=sorted(group.name for group in job.groups.all()),
        note=job.note,
        archived_at=job.archived_at,
        actors_least=job.actors_least,
        actors_most=job.actors_most,
        created_at=job.created_at,
        created_by=job.created_by.email,
        started_at=job.started_at,
        finished_at=job.finished_at,
        round_no=job.round_no,
        env_steps=job.env_steps,
        actors=job.actors,
        episode_return_mean=job.episode_return_mean,
        evaluation_return_mean=job.evaluation_return_mean,
        platform_s=job.platform_s,
        spent_usd=exact_usd(spent),
        reserved_usd=exact_usd(account.reserved_picodollars),
        limit_usd=exact_usd(account.limit_picodollars),
        free_usd=exact_usd(free),
        last_event=job.last_seq,
    )


def evaluations_of(job: Job) -> list[EvaluationShape]:
    """The job's evaluations by round, from its events."""
    kinds = (EventKind.EVALUATION, EventKind.RESUMED)
    rows = Event.objects.filter(job=job, kind__in=kinds, seq__lte=job.last_seq).order_by("seq")
    by_round: dict[int, EvaluationShape] = {}
    for kind, payload in rows.values_list("kind", "payload").iterator(chunk_size=500):
        if kind == EventKind.EVALUATION:
            by_round[payload["round_no"]] = EvaluationShape(
                round_no=payload["round_no"],
                env_steps=payload["total_env_steps"],
                return_mean=payload["return_mean"],
                return_std=payload.get("return_std"),
                episode_returns=payload.get("episode_returns") or [],
            )
        else:
            by_round = {known: row for known, row in by_round.items() if known <= payload["from_round"]}
    return [by_round[number] for number in sorted(by_round)]


def etag_of(shape: BaseModel) -> str:
    """The job's ETag. It changes with any field of the response."""
    return f'"{hashlib.sha256(shape.model_dump_json().encode()).hexdigest()[:24]}"'


def search_jobs(
    project: Project, question: str, filters: dict[str, str], cursor: str, limit: int
) -> Page[JobShape]:
    """A page of the jobs that match the query and all filters, newest first."""
    rows = job_list(project).filter(_matching_query(project, question), _matching_filters(filters))
    rows = rows.select_related("project")
    return newest_first(rows.prefetch_related("tags", "groups"), "created_at", cursor, limit, serialize_job)


def _matching_query(project: Project, question: str) -> Q:
    """Jobs that match the query, as in the list of jobs. Refused if the query is invalid."""
    if not question.strip():
        return Q()
    try:
        terms = parse(question)
    except NotUnderstood as refusal:
        raise Refused(
            422,
            "question",
            "No jobs were looked for.",
            str(refusal),
            "Simplify the query, or write it differently.",
        ) from None
    found = find_jobs(project, terms, FIRST, SYSTEM_CLOCK.now())
    return Q(pk__in=found.order_by().values("pk"))


def _matching_filters(filters: dict[str, str]) -> Q:
    paths = {
        "tag": "tags__name",
        "group": "groups__name",
        "name": "name__icontains",
        "environment": "spec__training__environment__id",
        "algorithm": "spec__training__algorithm__kind",
        "platform": "spec__platform__kind",
    }
    wanted = Q()
    for name, value in filters.items():
        if not value:
            continue
        if name == "state":
            wanted &= Q(observed__in=_states(value))
        else:
            wanted &= Q(**{paths[name]: value})
    return wanted


def _states(value: str) -> Any:
    if value in FILTERS:
        return FILTERS[value][1]
    if value in Observed.values:
        return (value,)
    known = ", ".join(dict.fromkeys([*FILTERS, *Observed.values]))
    raise Refused(
        422, "state", "No jobs were looked for.", f"There is no state “{value}”.", f"Use one of: {known}."
    )
