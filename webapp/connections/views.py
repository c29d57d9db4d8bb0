"""The pages of connections. A page shows what is stored and never waits for a cloud."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from cloud.accounts.provision import regions
from cloud.money.billing.price_book import PriceBook
from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.fresh_sign_in import confirm_url, fresh_sign_in_for_secrets, is_fresh
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.connections import account_setup, connection_check, forms, iam_documents, queries, services
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.models import Connection, ConnectionKind
from webapp.connections.text import WAYS, before_set_up, connection_status, rows, set_up_status, step_rows
from webapp.http.form_versions import FormVersion, refuse_if_stale

_JOBS_SHOWN = 8


@project_page()
@require_safe
def connection_list(request: HttpRequest, project: Project) -> HttpResponse:
    """All connections. Viewers see only their names."""
    connections = list(queries.connections_of(project))
    now, needed = SYSTEM_CLOCK.now(), queries.unfinished_job_counts(connections)
    cards = [
        {
            "connection": connection,
            "status": connection_status(connection, now),
            "jobs": needed.get(connection.pk, 0),
            "way": _way(connection.kind),
        }
        for connection in connections
    ]
    return render(request, "connections/list.html", {"section": "clouds", "cards": cards, "ways": WAYS})


@project_page(needs="owner")
@require_http_methods(["GET", "HEAD", "POST"])
def connection_new(request: HttpRequest, project: Project, kind: str) -> HttpResponse:
    """The first step: a name and a region. The rest follows on the connection's page."""
    if kind not in ConnectionKind.values:
        raise Http404("There is no such kind of connection.")
    form = forms.NewConnectionForm(request.POST or None, kind=kind)
    if request.method == "POST" and form.is_valid():
        try:
            connection = services.create_connection(
                project=project, user=person_of(request), kind=kind, **form.cleaned_data
            )
            return redirect("connections:detail", project.slug, connection.pk)
        except services.ConnectionRefused as refusal:
            form.add_error("name", str(refusal))
    cloud = ConnectionKind(kind).cloud
    context = {
        "section": "clouds",
        "form": form,
        "way": _way(kind),
        "regions": regions.offered(cloud, PriceBook.load()),
        "emulated": services.is_emulated(cloud),
    }
    return render(request, "connections/new.html", context, status=422 if request.method == "POST" else 200)


@live_page("editor")
def connection_detail(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    connection = queries.connection_in(project, connection_id)
    form = forms.identity_form(connection)
    refuse_if_stale(form, forms.identity_version(connection, queries.secret_of(connection)))
    return _detail(request, connection, form)


@sensitive_post_parameters()
@project_action("owner")
@fresh_sign_in_for_secrets
@sensitive_variables("form")
def connection_identity(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """Store the identity and request a test."""
    connection = queries.connection_in(project, connection_id)
    form = forms.identity_form(connection, request.POST)
    refuse_if_stale(form, forms.identity_version(connection, queries.secret_of(connection)))
    if not form.is_valid():
        return _detail(request, connection, form, status=422)
    try:
        connection = services.set_identity(
            connection=connection,
            plain=forms.plain_of(connection, form),
            secrets=forms.secrets_of(connection, form),
        )
    except KeysUnusable as refusal:
        form.add_error(None, f"Nothing was stored. {refusal}")
        return _detail(request, connection, form, status=422)
    connection_check.request_test(connection=connection)
    return redirect("connections:detail", project.slug, connection.pk)


@project_action("editor")
def check_connection(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    connection = queries.connection_in(project, connection_id)
    connection_check.request_test(connection=connection)
    return redirect("connections:detail", project.slug, connection.pk)


@live_page("editor")
def connection_report(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """The test's part of the page, for a page that waits for it."""
    connection = queries.connection_in(project, connection_id)
    return render(request, "connections/report.html", _report(connection))


@project_action("owner")
def connection_set_up(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """Request the set-up of the account: the functions' resources, or a check of the containers' image."""
    connection = queries.connection_in(project, connection_id)
    form = forms.set_up_form(connection, request.POST)
    forms.set_up_version(connection, queries.set_up_of(connection)).refuse_if_stale(request.POST)
    azure = connection.cloud == "azure"
    if not form.is_valid():
        wrong = str(next(iter(form.errors["image"]))) if azure else forms.WRONG_MEMORY
        messages.error(request, f"{wrong} Nothing was made.")
        return redirect("connections:detail", project.slug, connection.pk)
    ask: Any = account_setup.request_containers if azure else account_setup.request_set_up
    ask(connection=connection, **form.cleaned_data)
    return redirect("connections:detail", project.slug, connection.pk)


@project_action("owner")
def connection_take_down(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """Request the removal of what a set-up made."""
    connection = queries.connection_in(project, connection_id)
    forms.set_up_version(connection, queries.set_up_of(connection)).refuse_if_stale(request.POST)
    account_setup.request_removal(connection=connection)
    return redirect("connections:detail", project.slug, connection.pk)


@live_page("editor")
def connection_steps(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """The set-up's part of the page, for a page that watches it."""
    connection = queries.connection_in(project, connection_id)
    return render(request, "connections/steps.html", _set_up(connection))


@project_page(needs="editor")
@require_safe
def connection_policy_document(
    request: HttpRequest, project: Project, connection_id: str, paper: str
) -> HttpResponse:
    """A policy or template as a file."""
    document = iam_documents.policy_documents(queries.connection_in(project, connection_id)).get(paper)
    if document is None:
        raise Http404("There is no such document.")
    answer = HttpResponse(document.text, content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="{document.file_name}"'
    return answer


@project_action("owner")
def connection_remove(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    connection = queries.connection_in(project, connection_id)
    _removal_version(connection).refuse_if_stale(request.POST)
    services.remove_connection(connection=connection)
    messages.success(request, f"{connection.name} and its credentials are deleted.")
    return redirect("connections:list", project.slug)


def _removal_version(connection: Connection) -> FormVersion:
    return forms.removal_version(connection, queries.secret_of(connection), queries.set_up_of(connection))


def _detail(request: HttpRequest, connection: Connection, form: Any, status: int = 200) -> HttpResponse:
    jobs = queries.jobs_on(connection)
    made = queries.set_up_of(connection)
    context = {
        "section": "clouds",
        "way": _way(connection.kind),
        "form": form,
        "is_fresh": is_fresh(request),
        "confirm_url": confirm_url(
            request, reverse("connections:detail", args=[connection.project.slug, connection.pk])
        ),
        "papers": iam_documents.policy_documents(connection),
        "scope": iam_documents.scope_of(connection),
        "principal": settings.STARLING_AWS_PRINCIPAL,
        "secret": queries.secret_of(connection),
        "jobs": jobs[:_JOBS_SHOWN],
        "jobs_count": jobs.count(),
        "unfinished_jobs": queries.unfinished_jobs(connection).count(),
        **_report(connection),
        **_set_up(connection),
        "removal_version": _removal_version(connection),
        "set_up_version": forms.set_up_version(connection, made),
        "set_up_form": forms.set_up_form(connection, image=made.image if made else ""),
        "before_set_up": before_set_up(connection, PriceBook.load()),
    }
    return render(request, "connections/detail.html", context, status=status)


def _set_up(connection: Connection) -> dict[str, Any]:
    made = queries.set_up_of(connection)
    return {
        "connection": connection,
        "made": made,
        "set_up_status": set_up_status(made, SYSTEM_CLOCK.now()),
        "step_rows": step_rows(made.steps) if made else [],
    }


def _report(connection: Connection) -> dict[str, Any]:
    report = connection.test_report or {}
    return {
        "connection": connection,
        "status": connection_status(connection, SYSTEM_CLOCK.now()),
        "report": report,
        "rows": rows(report),
    }


def _way(kind: str) -> Any:
    return next(way for way in WAYS if way.kind == kind)
