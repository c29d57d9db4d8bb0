"""The part of a job's page about machines that call for it, and the command that makes one call."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from cloud.actor import bundle
from cloud.hosts import HostsOptions
from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.gateway import services
from webapp.job_states import TERMINAL
from webapp.jobs import machines
from webapp.jobs.models import Job
from webapp.jobs.queries import job_in


@project_page()
@require_safe
@never_cache
def machines_panel(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """The words by themselves, for the page that keeps itself fresh."""
    return render(request, "jobs/machines/machines.html", machines.panel(_job(project, job_id)))


@project_page(needs="editor")
@require_POST
@never_cache
@sensitive_variables("token", "context")
def machine_join(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """A new token, shown this once within the command that uses it."""
    job = _job(project, job_id)
    context: dict[str, object] = {"section": "jobs", "job": job, "only_here": machines.only_here()}
    if job.observed not in TERMINAL:
        token = services.new_token(job_id=job.pk, user=request.user)
        options = HostsOptions.model_validate(job.spec["platform"])
        context |= {"command": machines.command(token, options), "processes": options.processes}
    return render(request, "jobs/machines/join.html", context)


@project_page(needs="editor")
@require_safe
def actor_package(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """What a machine needs to run the command, as a zip."""
    _job(project, job_id)
    headers = {
        "Content-Disposition": 'attachment; filename="starling-actor.zip"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(bundle.portable().data, content_type="application/zip", headers=headers)


def _job(project: Project, job_id: str) -> Job:
    job = job_in(project, job_id)
    if job.spec["platform"]["kind"] != "hosts":
        raise Http404("This job does not run on machines that call.")
    return job
