"""Copies of jobs: reruns, and forks that start from another job's checkpoint."""

from __future__ import annotations

from typing import Annotated

from django.http import Http404, HttpResponse
from django.urls import reverse
from ninja.responses import Status
from pydantic import Field, StringConstraints

from webapp.api.auth import Token
from webapp.api.idempotency import say_if_replayed
from webapp.api.job_serialization import JobShape, etag_of, serialize_job
from webapp.api.router import ApiRouter, EditorsJob, Person
from webapp.api.routes.jobs import Key
from webapp.api.schemas import Request
from webapp.jobs.lineage import fork_source
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in
from webapp.jobs.seed_groups import run_again
from webapp.jobs.services import submit_job
from webapp.jobs.spec import JobSpec

router = ApiRouter(tags=["jobs"])


class Again(Request):
    new_seed: bool = Field(False, description="With an unused seed; else with its own.")


class Fork(Request):
    spec: JobSpec = Field(description="With the environment and network of the parent job.")
    checkpoint: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00/]*$")] = Field(
        "", description="Its name; empty: the best, else the newest."
    )


@router.post(
    "/projects/{slug}/jobs/{job_id}/again",
    auth=Token("jobs"),
    response=(201, 200),
    summary="Run a job once more",
)
def rerun_job(
    job: EditorsJob, person: Person, response: HttpResponse, again: Again, idempotency_key: Key = ""
) -> Status[JobShape]:
    """With the budget of its launch, outside its group."""
    made = run_again(job=job, user=person, new_seed=again.new_seed, key=idempotency_key or None)
    return _made(response, made)


@router.post(
    "/projects/{slug}/jobs/{job_id}/forks",
    auth=Token("jobs"),
    response=(201, 200),
    summary="Launch a job that starts from a checkpoint of this one",
)
def fork_job(
    job: EditorsJob, person: Person, response: HttpResponse, fork: Fork, idempotency_key: Key = ""
) -> Status[JobShape]:
    made_from = fork_source(job, fork.checkpoint)
    if made_from is None:
        raise Http404("This job has no such checkpoint.")
    made = submit_job(
        project=job.project,
        user=person,
        spec=fork.spec,
        idempotency_key=idempotency_key or None,
        made_from=made_from,
    )
    return _made(response, made)


def _made(response: HttpResponse, job: Job) -> Status[JobShape]:
    """201 for a new job; 200 for the one that the same Idempotency-Key launched before."""
    shape = serialize_job(job_in(job.project, job.pk))
    response["Location"] = reverse("api_v1:get_job", args=[job.project.slug, job.pk])
    response["ETag"] = etag_of(shape)
    say_if_replayed(response, job)
    return Status(200 if job.replayed else 201, shape)
