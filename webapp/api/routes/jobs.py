"""Jobs: list, launch, stop, pause, resume, raise the budget, and delete."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Header, Query
from ninja.responses import Status
from pydantic import Field

from webapp.accounts.models import Project, User
from webapp.api.auth import Token
from webapp.api.idempotency import say_if_replayed
from webapp.api.job_serialization import JobShape, etag_of, search_jobs, serialize_job
from webapp.api.paging import Cursor, Limit, Page, Word
from webapp.api.problems import ApiRefused, spec_refused
from webapp.api.router import (
    ApiRouter,
    Dependency,
    EditorsJob,
    EditorsProject,
    Person,
    ViewersJob,
    ViewersProject,
    caller_of,
    job_of,
)
from webapp.api.schemas import Request
from webapp.jobs import services
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.launch.project_choices import schedulers
from webapp.jobs.list import actions
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in
from webapp.jobs.spec import JobSpec

router = ApiRouter(tags=["jobs"])

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=100,
        pattern=r"^[!-~]*$",
        description="The same key gives the same job again, however often the request is sent.",
    ),
]
IfMatch = Annotated[
    str,
    Header(alias="If-Match", max_length=200, description="Do it only if the job's ETag is still this one."),
]


_Question = Annotated[
    str, Query(max_length=400, pattern=r"^[^\x00]*$", description="A search, as in the list of jobs.")
]


class NewBudget(Request):
    limit_usd: Decimal = Field(
        gt=0, le=1_000_000, decimal_places=6, description="More than the present limit."
    )


def _apply(
    request: HttpRequest, response: HttpResponse, slug: str, job_id: str, if_match: IfMatch = ""
) -> Callable[[Any], JobShape]:
    """Apply the action and return the job. Refused if its ETag has changed, or if the action is not possible."""
    job = job_of(request, slug, job_id, "editor")
    if if_match and if_match != "*" and etag_of(serialize_job(job)) not in if_match:
        raise ApiRefused(
            412,
            "changed",
            "Nothing was done.",
            "The job has changed since its ETag was read.",
            "Read the job again, and send its ETag if you still want this.",
        )

    def done(change: Any) -> JobShape:
        try:
            change(job=job, user=caller_of(request))
        except services.SpecRefused as refusal:
            raise spec_refused(refusal.problems) from None
        except ValueError as refusal:  # the text says why, and what to do
            raise ApiRefused(
                409, "not-now", "Nothing was done.", str(refusal), "Read the job to see what it waits for."
            ) from None
        shape = serialize_job(job_in(job.project, job_id))
        response["ETag"] = etag_of(shape)
        return shape

    return done


Done = Annotated[Callable[[Any], JobShape], Dependency(_apply)]


@router.get("/projects/{slug}/jobs", summary="Jobs of a project, newest first")
def list_jobs(
    project: ViewersProject,
    q: _Question = "",
    state: Word = "",
    tag: Word = "",
    group: Word = "",
    name: Word = "",
    environment: Word = "",
    algorithm: Word = "",
    platform: Word = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Page[JobShape]:
    """`q` is a search, as above the list of jobs and in saved views: state:failed cost>1 -tag:keep.
    Beside it, `state` is a state, or active, paused, succeeded, failed or stopped; `name` is a part of it."""
    lookups = {
        "tags__name": tag,
        "groups__name": group,
        "name__icontains": name,
        "spec__training__environment__id": environment,
        "spec__training__algorithm__kind": algorithm,
        "spec__platform__kind": platform,
    }
    return search_jobs(project, q, state, lookups, cursor, limit)


@router.post("/projects/{slug}/jobs", auth=Token("jobs"), response=(201, 200), summary="Launch a job")
def create_job(
    project: EditorsProject, person: Person, response: HttpResponse, spec: JobSpec, idempotency_key: Key = ""
) -> Status[JobShape]:
    """201 for a new job; 200 for the one that the same Idempotency-Key launched before."""
    job = services.submit_job(
        project=project, user=person, spec=spec, idempotency_key=idempotency_key or None
    )
    _require_same(project, job, spec)
    shape = serialize_job(job_in(project, job.pk))
    response["Location"] = reverse("api_v1:get_job", args=[project.slug, job.pk])
    response["ETag"] = etag_of(shape)
    say_if_replayed(response, job)
    return Status(200 if job.replayed else 201, shape)


def _require_same(project: Project, job: Job, spec: JobSpec) -> None:
    """Refused if the key launched a job of another spec."""
    whole = cloud_requirements.fill_in_setup(project, schedulers().fill_in_weights(project, spec))
    if job.spec != whole.model_dump(mode="json"):
        raise ApiRefused(
            409,
            "key-used",
            "No job was launched.",
            f"This Idempotency-Key launched {job.pk}, and its spec was another one.",
            "Use a new key for a new job.",
        )


@router.get("/projects/{slug}/jobs/{job_id}", response=(200, 304), summary="One job")
def get_job(job: ViewersJob) -> JobShape:
    return serialize_job(job)


@router.get("/projects/{slug}/jobs/{job_id}/spec", summary="A job's spec")
def get_job_spec(job: ViewersJob) -> dict[str, Any]:
    """The spec as it was launched; the same document launches it again."""
    spec: dict[str, Any] = job.spec
    return spec


@router.post("/projects/{slug}/jobs/{job_id}/stop", auth=Token("jobs"), summary="Stop a job")
def stop_job(done: Done) -> JobShape:
    """It drains within seconds and keeps its checkpoint. Stopping a job that is over changes nothing."""
    return done(services.stop_job)


@router.post("/projects/{slug}/jobs/{job_id}/pause", auth=Token("jobs"), summary="Pause a job")
def pause_job(done: Done) -> JobShape:
    """It saves a checkpoint and costs nothing more until it is resumed."""
    return done(services.pause_job)


@router.post("/projects/{slug}/jobs/{job_id}/resume", auth=Token("jobs"), summary="Resume a paused job")
def resume_job(done: Done) -> JobShape:
    """From its last checkpoint. Only a paused job changes."""
    return done(services.go_on)


@router.post(
    "/projects/{slug}/jobs/{job_id}/start-over",
    auth=Token("jobs"),
    summary="Start over a job whose checkpoints are gone",
)
def start_job_over(done: Done) -> JobShape:
    """Begins again and pays again. Refused unless the job paused because its recorded checkpoints cannot be read;
    it goes on by itself once their folder is back."""
    return done(services.start_over)


@router.put("/projects/{slug}/jobs/{job_id}/budget", auth=Token("budget"), summary="Raise a job's budget")
def raise_job_budget(done: Done, budget: NewBudget) -> JobShape:
    """Requires the scope “budget”, where the page requires a fresh sign-in. A job that its budget stopped
    resumes."""

    def change(*, job: Job, user: User) -> Job:
        return services.raise_budget(job=job, user=user, limit_usd=budget.limit_usd)

    return done(change)


@router.delete(
    "/projects/{slug}/jobs/{job_id}",
    auth=Token("jobs"),
    response=204,
    summary="Delete an archived job for good",
)
def delete_job(job: EditorsJob, person: Person) -> None:
    """Its curves, events, log, checkpoints, films and surfaces go; what it cost stays in reports. 410 from then on."""
    try:
        actions.delete(job=job, user=person)
    except actions.LabelRefused as refusal:
        raise ApiRefused(
            409, "not-now", "Nothing was deleted.", str(refusal), "Do that first, then delete it."
        ) from None
