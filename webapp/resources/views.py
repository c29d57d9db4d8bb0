"""The lines about running resources. Pages that show them fetch them again."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.jobs.queries import job_in


@project_page()
@require_safe
@never_cache
def of_project(request: HttpRequest, project: Project) -> HttpResponse:
    return render(request, "resources/again.html")


@project_page()
@require_safe
@never_cache
def of_job(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    return render(request, "resources/again.html", {"job": job_in(project, job_id)})
