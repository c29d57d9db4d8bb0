"""The page of memory profiles, of one account or of the simulated cloud. It never waits for a cloud."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from cloud.accounts.profiling_runs import ProfilingPlan
from training.rl.environments import catalogue
from training.rl.environments.model import EnvironmentSpec
from webapp.accounts.access import live_page, person_of, project_action, project_page, refusal
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Connection
from webapp.connections.text import step_rows
from webapp.formatting import read_whole
from webapp.resources.profiling import queries, services
from webapp.resources.profiling.models import MemoryProfile
from webapp.resources.profiling.text import caution, into_the_form, profile_status, result_of

_EARLIER_SHOWN = 5


@project_page(needs="editor")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def profile_page(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    connection = queries.account_in(project, connection_id)
    form = ProfileForm(request.POST or None, in_account=connection is not None)
    if request.method != "POST":
        return _page(request, project, connection, form)
    _require_owner(request, connection)
    if not form.is_valid():
        return _page(request, project, connection, form, status=422)
    keep = bool(form.cleaned_data.get("keep"))
    try:
        services.ask_for_profile(
            project=project, user=person_of(request), connection=connection, plan=form.plan, keep=keep
        )
    except services.ProfileRefused as refused:
        messages.error(request, str(refused))
        return _page(request, project, connection, form, status=422)
    return redirect("profiling:page", project.slug, connection_id)


@live_page("editor")
def profile_result(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """The part of the page about the newest profile, for a page that updates it."""
    connection = queries.account_in(project, connection_id)
    latest = queries.profiles_of(project, connection).first()
    return render(request, "resources/profiling/result.html", _result(project, connection, latest))


@project_action("editor")
def profile_cost(request: HttpRequest, project: Project, connection_id: str) -> HttpResponse:
    """The cost of the profile in the form; empty while the form is invalid."""
    connection = queries.account_in(project, connection_id)
    form = ProfileForm(request.POST, in_account=connection is not None)
    if not form.is_valid():
        return HttpResponse()
    return render(request, "resources/profiling/cost.html", _cost(connection, form))


def _require_owner(request: HttpRequest, connection: Connection | None) -> None:
    """Raise a 403 unless the person is an owner: only owners create functions in an account, as with set-up."""
    membership = request.membership  # type: ignore[attr-defined]
    if connection is not None and not membership.allows("owner"):
        raise PermissionDenied(refusal(membership.role, "owner"))


def _page(
    request: HttpRequest,
    project: Project,
    connection: Connection | None,
    form: ProfileForm,
    status: int = 200,
) -> HttpResponse:
    profiles = list(queries.profiles_of(project, connection)[: _EARLIER_SHOWN + 1])
    latest = profiles[0] if profiles else None
    context = {
        "section": "clouds",
        "form": form,
        "environments": catalogue.ENTRIES.values(),
        "ready": connection is None or bool((connection.test_report or {}).get("ok")),
        "earlier": [(profile, result_of(profile).choice) for profile in profiles[1:]],
        "caution": caution(connection),
        **_cost(connection, form),
        **_result(project, connection, latest),
    }
    return render(request, "resources/profiling/page.html", context, status=status)


def _cost(connection: Connection | None, form: ProfileForm) -> dict[str, Any]:
    """The cost of what the form contains, or of its initial values."""
    if not form.is_bound:
        begun = {name: field.initial or "" for name, field in form.fields.items()}
        form = ProfileForm(begun, in_account=connection is not None)
    context: dict[str, Any] = {"connection": connection, "limit": services.LIMIT_PICODOLLARS}
    if form.is_valid():
        try:
            context["cost"] = services.cost_of(connection, form.plan)
        except services.ProfileRefused as refused:
            context["no_cost"] = str(refused)
    return context


def _result(project: Project, connection: Connection | None, latest: MemoryProfile | None) -> dict[str, Any]:
    result = result_of(latest) if latest else None
    return {
        "connection": connection,
        "where": connection.pk if connection else queries.SIMULATED,
        "profile": latest,
        "plan": latest.parsed_plan if latest else None,
        "status": profile_status(latest, SYSTEM_CLOCK.now()),
        "rows": result.rows if result else [],
        "choice": result.choice if result else None,
        "step_rows": step_rows(latest.steps) if latest else [],
        "into_the_form": _address_of_the_form(project, latest),
    }


def _address_of_the_form(project: Project, latest: MemoryProfile | None) -> str:
    filled = into_the_form(latest) if latest else {}
    return f"{reverse('jobs:new', args=[project.slug])}?{urlencode(filled)}" if filled else ""


SIZES = "512 1024 1769 3008"


class ProfileForm(forms.Form):
    """After `is_valid`, `plan` is what to run."""

    plan: ProfilingPlan

    environment = forms.CharField(label="Environment", max_length=100, initial="Hopper-v5")
    memory_mb = forms.CharField(label="Sizes of memory", max_length=100, initial=SIZES)
    environments_per_actor = forms.IntegerField(
        label="Environment copies per actor", initial=1, min_value=1, max_value=256, required=False
    )
    steps = forms.IntegerField(label="Steps of a call", initial=1024, min_value=64, max_value=16_384)
    keep = forms.BooleanField(label="Keep new functions", required=False)

    def __init__(self, *args: Any, in_account: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("environments_per_actor", "steps"):
            self.fields[name].widget = forms.TextInput(attrs={"inputmode": "numeric"})
        self.fields["environment"].widget.attrs["list"] = "environments"
        if not in_account:
            del self.fields["keep"]
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def clean_environment(self) -> EnvironmentSpec:
        try:
            return EnvironmentSpec(id=self.cleaned_data["environment"].strip())
        except ValidationError as error:
            raise forms.ValidationError(_words(error)) from None

    def clean_memory_mb(self) -> tuple[int, ...]:
        """Sizes with spaces or commas between; 1,024 is one number."""
        text = re.sub(r"(?<=\d),(?=\d{3}(\D|$))", "", self.cleaned_data["memory_mb"])
        words = re.split(r"[\s,;]+", text.strip())
        sizes = [read_whole(word) for word in words]
        if None in sizes:
            raise forms.ValidationError("Whole numbers of MB with spaces between, such as 512 1024 1769.")
        return tuple(size for size in sizes if size is not None)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            wanted = {name: cleaned[name] for name in ("environment", "memory_mb", "steps")}
            wanted["environments_per_actor"] = cleaned["environments_per_actor"] or 1
            try:
                self.plan = ProfilingPlan(**wanted)
            except ValidationError as error:
                self.add_error("memory_mb", _words(error))
        return cleaned


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "too_long":
        return f"At most {first['ctx']['max_length']} sizes at once."
    text = str(first["msg"]).removeprefix("Value error, ")
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
