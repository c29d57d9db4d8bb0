"""Actors on the user's own machines: their part of a job's page, and the command that connects a machine."""

from __future__ import annotations

import shlex
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from cloud.actor import bundle
from cloud.platforms.hosts import HostsOptions
from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.gateway import queries, services
from webapp.connections.gateway.queries import CallingMachines
from webapp.formatting import plural
from webapp.job_states import TERMINAL
from webapp.jobs.launch.requirements import is_loopback
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in


def panel(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """Return the context of the job's machines; empty for a job on another platform."""
    if not _has_machines(job):
        return {"machines": None}
    options = HostsOptions.model_validate(job.spec["platform"])
    machines = queries.machines(job.pk, clock.now().timestamp())
    over = job.observed in TERMINAL
    return {
        "job": job,
        "machines": machines,
        "machines_over": over,
        "machines_words": "" if over else words(machines, options),
        "only_here": is_loopback(),
        "machine_tokens": queries.tokens_of_people(job.pk),
    }


def words(machines: CallingMachines, options: HostsOptions) -> str:
    if not machines.called:
        return f"Waiting for machines: 0 of {options.machines} have connected."
    if not machines.present:
        return (
            f"None of your machines is connected now; {machines.called} of {options.machines} have connected."
            f" Calls wait {options.wait_min:g} min for one."
        )
    here = plural(machines.present, "machine is", "machines are")
    at_work = f"{plural(machines.actors, 'actor')}, {machines.working} at work"
    if machines.present >= options.machines:
        return f"{here} here: {at_work}."
    return f"{here} here, {options.machines} are expected: {at_work}."


def command(token: str, options: HostsOptions) -> str:
    """Return the command that a machine runs, for a POSIX shell."""
    processes = f" --processes {options.processes}" if options.processes > 1 else ""
    address = shlex.quote(settings.STARLING_BASE_URL)
    return f"STARLING_RUN_TOKEN={token} \\\n  python -m cloud.actor.puller --gateway {address}{processes}"


@sensitive_variables("token")
def new_command(job: Job, user: User) -> str:
    """Create a token of the job and return the command that contains it."""
    token = services.new_token(job_id=job.pk, user=user)
    return command(token, HostsOptions.model_validate(job.spec["platform"]))


@live_page()
def machines_panel(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Return the panel alone, for live updates."""
    return render(request, "jobs/machines/machines.html", panel(_job(project, job_id)))


@project_action("editor")
@never_cache
@sensitive_variables("context")
def machine_join(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Create a token, shown once within the command that uses it."""
    job = _job(project, job_id)
    context: dict[str, object] = {"section": "jobs", "job": job, "only_here": is_loopback()}
    if job.observed not in TERMINAL:
        options = HostsOptions.model_validate(job.spec["platform"])
        context |= {"command": new_command(job, person_of(request)), "processes": options.processes}
    return render(request, "jobs/machines/join.html", context)


@project_action("editor")
def machine_token_end(request: HttpRequest, project: Project, job_id: str, number: int) -> HttpResponse:
    """End a token, so that machines with it are refused."""
    job = _job(project, job_id)
    end_token(job, number)
    messages.success(request, f"Token {number} ended. Machines that use it are refused within half a minute.")
    return redirect("jobs:detail", project.slug, job.pk)


def end_token(job: Job, number: int) -> None:
    """Raise Http404 if the job has no such valid token."""
    if not services.end_token(job_id=job.pk, number=number):
        raise Http404("This job has no such token, or it has ended.")


@project_page(needs="editor")
@require_safe
def actor_package(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    _job(project, job_id)
    return package_file()


def package_file() -> HttpResponse:
    """Return what a machine needs to run the command, as a zip."""
    headers = {
        "Content-Disposition": 'attachment; filename="starling-actor.zip"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(bundle.portable().data, content_type="application/zip", headers=headers)


def _job(project: Project, job_id: str) -> Job:
    job = job_in(project, job_id)
    require_hosts(job)
    return job


def _has_machines(job: Job) -> bool:
    return bool(job.spec["platform"]["kind"] == HostsOptions().kind)


def require_hosts(job: Job) -> None:
    """Raise Http404 for a job on another platform."""
    if not _has_machines(job):
        raise Http404("This job does not use your own machines.")
