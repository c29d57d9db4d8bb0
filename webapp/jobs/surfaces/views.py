"""Reward surfaces on the tab of a job's checkpoints: requested, and updated while they are measured."""

from __future__ import annotations

from typing import Any, get_args

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.accounts.access import live_page, person_of, project_action
from webapp.accounts.models import Project
from webapp.jobs.models import Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.queries import job_in
from webapp.jobs.surfaces import services
from webapp.jobs.surfaces.heat_map import picture
from webapp.jobs.surfaces.models import Surface, SurfaceState
from webapp.jobs.surfaces.services import Grid


@live_page()
def surfaces(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """The part of the tab with the surfaces, for a page that updates it."""
    return render(request, "jobs/surfaces/list.html", panel(job_in(project, job_id)))


@project_action("editor")
def surface_ask(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    job = job_in(project, job_id)
    form = SurfaceForm(request.POST)
    if not form.is_valid():
        field, words = next(iter(form.errors.items()))
        messages.error(request, f"{form[field].label}: {words[0]}")
        return redirect("jobs:checkpoints", project.slug, job.pk)
    options = form.cleaned_data
    chosen = policies.checkpoint_in(job, options.pop("checkpoint"))
    services.request_surface(job=job, chosen=chosen, user=person_of(request), **options)
    return redirect("jobs:checkpoints", project.slug, job.pk)


class SurfaceForm(forms.Form):
    checkpoint = forms.CharField(max_length=200)
    grid = forms.TypedChoiceField(
        label="Points",
        coerce=int,
        choices=[(size, f"{size} × {size}") for size in get_args(Grid)],
        initial=15,
    )
    span = forms.FloatField(label="To each side", min_value=0.01, max_value=10.0, initial=1.0)
    episodes = forms.IntegerField(label="Episodes a point", min_value=1, max_value=20, initial=1)


_PENDING = (SurfaceState.QUEUED, SurfaceState.SURVEYING)


def panel(job: Job) -> dict[str, Any]:
    surfaces = list(Surface.objects.filter(job=job))
    return {
        "job": job,
        "kept": policies.list_checkpoints(job),
        "surfaces": [{"surface": one, "picture": picture(one), "whole": one.grid**2} for one in surfaces],
        "surfaces_pending": any(surface.state in _PENDING for surface in surfaces),
        "surface_form": SurfaceForm(),
    }
