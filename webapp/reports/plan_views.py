"""Scheduled reports: the project's editors set them up and stop them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.reports import queries, schedules
from webapp.reports.access import address
from webapp.reports.forms import ScheduleForm


@project_page(needs="editor")
@require_POST
def schedule(request: HttpRequest, project: Project) -> HttpResponse:
    form = ScheduleForm(request.POST, project=project, user=request.user)
    if form.is_valid():
        schedules.add_schedule(project=project, user=request.user, **form.cleaned_data)
        messages.success(request, "The report will be sent after each whole week or month (UTC).")
    else:
        problems = "; ".join(
            f"{form[name].label}: {' '.join(map(str, found))}" for name, found in form.errors.items()
        )
        messages.error(request, f"Nothing was set up. {problems}")
    return redirect(f"{address('page', project)}#schedules")


@project_page(needs="editor")
@require_POST
def unschedule(request: HttpRequest, project: Project, schedule_id: int) -> HttpResponse:
    schedules.stop_schedule(queries.schedule_in(project, schedule_id))
    messages.success(request, "That report is no longer sent.")
    return redirect(f"{address('page', project)}#schedules")
