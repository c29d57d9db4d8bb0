"""A person's projects, a new one, and one project's name and archive."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts.access import person_of, project_action, project_page, signed_in
from webapp.accounts.models import Membership, Project, User
from webapp.accounts.services import LONGEST_NAME, ProjectRefused, rename_project, start_project
from webapp.http.form_versions import refuse_if_stale, version_of
from webapp.job_states import ACTIVE, Observed
from webapp.overview.projects import services


class ProjectForm(forms.Form):
    name = forms.CharField(
        label="Name", max_length=LONGEST_NAME, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def project_list(request: HttpRequest) -> HttpResponse:
    """A person's projects, and the form of a new one."""
    person = person_of(request)
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = start_project(form.cleaned_data["name"], person)
        except ProjectRefused as refusal:
            form.add_error("name", str(refusal))
        else:
            return redirect("overview:page", made.slug)
    rows = memberships_of(person)
    context: dict[str, Any] = {
        "section": "projects",
        "form": form,
        "open": [row for row in rows if row.project.archived_at is None],
        "archived": [row for row in rows if row.project.archived_at is not None],
    }
    return render(request, "overview/projects/list.html", context, status=422 if form.errors else 200)


def memberships_of(person: User) -> QuerySet[Membership]:
    """The person's memberships by project name, with how many people, running and queued jobs each project has."""
    people = Count("project__memberships", distinct=True)
    running, queued = (
        Count("project__jobs", filter=Q(project__jobs__observed__in=states), distinct=True)
        for states in (ACTIVE - {Observed.QUEUED}, {Observed.QUEUED})
    )
    rows = Membership.objects.filter(user=person).select_related("project")
    return rows.annotate(people=people, running=running, queued=queued).order_by("project__name", "pk")


@project_page("owner", archived=True)
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def settings(request: HttpRequest, project: Project) -> HttpResponse:
    """The project's name, and its archive. An archived project cannot be renamed."""
    form = ProjectForm(request.POST or None, initial={"name": project.name})
    refuse_if_stale(form, version_of(form, f"project {project.pk}"))
    if request.method == "POST" and project.archived_at is not None:
        form.add_error(None, "Unarchive the project first, then rename it.")
    if request.method == "POST" and form.is_valid():
        try:
            rename_project(project, form.cleaned_data["name"])
        except ProjectRefused as refusal:
            form.add_error("name", str(refusal))
        else:
            messages.success(request, "The project is renamed. Its addresses stay as they were.")
            return redirect("projects:settings", project.slug)
    context = {"section": "members", "form": form, "running": services.running_sentence(project)}
    return render(request, "overview/projects/settings.html", context, status=422 if form.errors else 200)


@project_action("owner")
def archive(request: HttpRequest, project: Project) -> HttpResponse:
    try:
        services.archive_project(
            project=project, user=person_of(request), end_running=bool(request.POST.get("end_running"))
        )
    except services.ProjectBusy as busy:
        messages.error(request, f"Nothing was archived. {busy}")
        return redirect("projects:settings", project.slug)
    messages.success(
        request, f"{project.name} is archived. Everyone in it may look, and nothing can be changed."
    )
    return redirect("projects:list")


@project_action("owner", archived=True)
def unarchive(request: HttpRequest, project: Project) -> HttpResponse:
    services.unarchive_project(project=project)
    messages.success(request, f"{project.name} is open again.")
    return redirect("overview:page", project.slug)
