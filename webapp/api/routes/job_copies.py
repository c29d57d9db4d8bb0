"""Jobs made from jobs: the same once more, and forks that begin with what another one has learned."""

from __future__ import annotations

from typing import Annotated

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field, StringConstraints

from webapp.api.auth import Token, project_of
from webapp.api.job_serialization import etag_of, job_shape
from webapp.api.problems import spec_refused
from webapp.api.routes.jobs import Key, caller_of
from webapp.api.schemas.jobs import JobShape
from webapp.jobs.lineage import forked
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in
from webapp.jobs.rerun import run_again
from webapp.jobs.services import SpecRefused, submit_job
from webapp.jobs.spec import JobSpec

router = Router(tags=["jobs"])


class Again(BaseModel):
    model_config = {"extra": "forbid"}

    new_seed: bool = Field(False, description="With a seed it has not had; else with its own.")


class Fork(BaseModel):
    model_config = {"extra": "forbid"}

    spec: JobSpec = Field(description="With the environment and network of the job it begins with.")
    checkpoint: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00/]*$")] = Field(
        "", description="Its name; empty: the best, else the newest."
    )


@router.post(
    "/projects/{slug}/jobs/{job_id}/again",
    auth=Token("jobs"),
    response={201: JobShape},
    summary="Run a job once more",
)
def again(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    job_id: str,
    again: Again,
    idempotency_key: Key = "",
) -> Status:
    """With the budget it was launched with, outside its group."""
    job = job_in(project_of(request, slug, "editor"), job_id)
    try:
        made = run_again(
            job=job, user=caller_of(request), new_seed=again.new_seed, key=idempotency_key or None
        )
    except SpecRefused as refusal:
        raise spec_refused(refusal.problems) from None
    return _made(response, slug, made)


@router.post(
    "/projects/{slug}/jobs/{job_id}/forks",
    auth=Token("jobs"),
    response={201: JobShape},
    summary="Launch a job that begins with a checkpoint of this one",
)
def fork(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    job_id: str,
    fork: Fork,
    idempotency_key: Key = "",
) -> Status:
    project = project_of(request, slug, "editor")
    made_from = forked(job_in(project, job_id), fork.checkpoint)
    if made_from is None:
        raise Http404("This job has no such checkpoint to begin with.")
    try:
        made = submit_job(
            project=project,
            user=caller_of(request),
            spec=fork.spec,
            idempotency_key=idempotency_key or None,
            made_from=made_from,
        )
    except SpecRefused as refusal:
        raise spec_refused(refusal.problems) from None
    return _made(response, slug, made)


def _made(response: HttpResponse, slug: str, job: Job) -> Status:
    shape = job_shape(job_in(job.project, job.pk))
    response["Location"] = reverse("api_v1:get_job", args=[slug, job.pk])
    response["ETag"] = etag_of(shape)
    return Status(201, shape)
