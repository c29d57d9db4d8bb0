"""Machines of one's own: the command by which they join a job, and the package that it needs."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from pydantic import Field

from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, EditorsJob, Person
from webapp.api.routes.history import a_file
from webapp.api.schemas import Shape
from webapp.connections.gateway import queries
from webapp.job_states import TERMINAL
from webapp.jobs import machines
from webapp.jobs.launch.requirements import is_loopback

router = ApiRouter(tags=["jobs"])


class JoinShape(Shape):
    """What a machine runs to join a job. Only this response contains its token."""

    command: str = Field(description="For a POSIX shell, in the folder of the unpacked package.")
    package: str = Field(description="The address of the package, below this site.")
    only_here: bool = Field(description="The site's address leads to its own machine only.")


class MachineTokenShape(Shape):
    id: int = Field(description="The number before the dot in the token.")
    made_by: str
    made_at: datetime


@router.post(
    "/projects/{slug}/jobs/{job_id}/machines",
    auth=Token("jobs"),
    response=201,
    summary="Make the command by which machines join a job",
)
@sensitive_variables("command")
def make_join_command(job: EditorsJob, person: Person) -> JoinShape:
    """For jobs on machines of your own. It works for this job alone, on any number of machines.

    It ends with the job, and when its maker leaves the project or sets a new password.
    """
    machines.require_hosts(job)
    if job.observed in TERMINAL:
        why, fix = "The job is over; it needs no machines any more.", "Launch it again first."
        raise ApiRefused(409, "not-now", "No command was made.", why, fix)
    command = machines.new_command(job, person)
    package = reverse("api_v1:get_actor_package", args=[job.project.slug, job.pk])
    return JoinShape(command=command, package=package, only_here=is_loopback())


@router.get(
    "/projects/{slug}/jobs/{job_id}/machines/tokens", summary="The tokens with which machines join a job"
)
def list_machine_tokens(
    job: EditorsJob, after: After = 0, limit: Limit = 50
) -> NumberedPage[MachineTokenShape]:
    """The valid ones, in the order in which they were made. The tokens themselves are not stored."""
    machines.require_hosts(job)
    rows = queries.tokens_of_people(job.pk)
    return oldest_first(rows, after, limit, lambda row: MachineTokenShape.of(row, made_by=str(row.made_by)))


@router.delete(
    "/projects/{slug}/jobs/{job_id}/machines/tokens/{number}",
    auth=Token("jobs"),
    response=204,
    summary="End a token with which machines join a job",
)
def end_machine_token(job: EditorsJob, number: RowId) -> None:
    """Machines that use it are refused within half a minute. Ending it again is a 404."""
    machines.require_hosts(job)
    machines.end_token(job, number)


@router.get(
    "/projects/{slug}/jobs/{job_id}/machines/package",
    summary="The package that machines need to join a job",
    openapi_extra=a_file("application/zip"),
)
def get_actor_package(job: EditorsJob) -> HttpResponseBase:
    """A zip. Unpack it, and install its requirements.txt for Python 3.11 or later."""
    machines.require_hosts(job)
    answer: HttpResponse = machines.package_file()
    return answer
