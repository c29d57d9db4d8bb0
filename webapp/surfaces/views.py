"""Reward surfaces on the tab of a job's checkpoints: requested, and updated while they are measured."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.jobs.models import Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.queries import job_in
from webapp.surfaces import services
from webapp.surfaces.forms import SurfaceForm
from webapp.surfaces.queries import panel


@project_page()
@require_safe
@never_cache
def surfaces(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """The part of the tab with the surfaces, for a page that updates it."""
    return render(request, "surfaces/list.html", panel(job_in(project, job_id)))


@project_page(needs="editor")
@require_POST
def surface_ask(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    job = job_in(project, job_id)
    form = SurfaceForm(request.POST)
    if not form.is_valid():
        field, words = next(iter(form.errors.items()))
        messages.error(request, f"{form[field].label}: {words[0]}")
        return _to_tab(project, job)
    options = form.cleaned_data
    chosen = policies.checkpoint_in(job, options.pop("checkpoint"))
    services.request_surface(job=job, chosen=chosen, user=request.user, **options)
    return _to_tab(project, job)


def _to_tab(project: Project, job: Job) -> HttpResponse:
    return redirect("jobs:checkpoints", project.slug, job.pk)
