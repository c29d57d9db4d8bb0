"""The lines about running resources. Pages that show them fetch them again."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.accounts.access import live_page
from webapp.accounts.models import Project
from webapp.jobs.queries import job_in


@live_page()
def of_project(request: HttpRequest, project: Project) -> HttpResponse:
    return render(request, "resources/again.html")


@live_page()
def of_job(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    return render(request, "resources/again.html", {"job": job_in(project, job_id)})
