"""Pages about the API: tokens, the reference, and downloads of the client."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Prefetch
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.access import person_of, project_page, signed_in
from webapp.accounts.fresh_sign_in import fresh_sign_in
from webapp.accounts.models import Project, User
from webapp.accounts.queries import projects_of
from webapp.api import reference, tokens
from webapp.api.models import ApiToken, Deed, TokenScope
from webapp.api.routes.history import tensorboard_file
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.queries import job_in

FOLDER = settings.BASE_DIR / "client"
CLIENT = FOLDER / "starling.py"
_FIRST_LINE = b"#!/usr/bin/env python3\n"
_MAIN = "import sys\n\nfrom starling.main import main\n\nsys.exit(main())\n"
_ENDED_SHOWN = 10
_DEEDS_SHOWN = 5
DAYS = ((7, "In a week"), (30, "In 30 days"), (90, "In 90 days"), (365, "In a year"))
ABILITIES = (
    ("", "Read"),
    (TokenScope.JOBS, "Read and run jobs"),
    (TokenScope.BUDGET, "Run jobs and raise budgets"),
    (TokenScope.MANAGE, "Everything my role allows, people and clouds too"),
)
_SCOPES: dict[str, tuple[str, ...]] = {
    "": (),
    TokenScope.JOBS: (TokenScope.JOBS,),
    TokenScope.BUDGET: (TokenScope.JOBS, TokenScope.BUDGET),
    TokenScope.MANAGE: (TokenScope.JOBS, TokenScope.BUDGET, TokenScope.MANAGE),
}
"""Scopes by ability. Owners decide who may raise budgets, so “manage” includes “budget”."""


class TokenForm(forms.Form):
    """A token's name, its ability, its project and its end."""

    name = forms.CharField(label="Name", max_length=60)
    ability = forms.ChoiceField(label="It may", choices=ABILITIES, initial=TokenScope.JOBS, required=False)
    project = forms.ModelChoiceField(
        label="In",
        queryset=Project.objects.none(),
        required=False,
        empty_label="All your projects",
        to_field_name="slug",
    )
    days = forms.TypedChoiceField(label="Ends", choices=DAYS, coerce=int, initial=tokens.DAYS_BY_DEFAULT)

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
        self.fields["project"].queryset = projects_of(user)  # type: ignore[attr-defined]

    def given(self) -> dict[str, Any]:
        """The arguments of `make_token`."""
        clean = self.cleaned_data
        scopes = _SCOPES[clean["ability"]]
        return {"name": clean["name"], "scopes": scopes, "project": clean["project"], "days": clean["days"]}


@signed_in
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@sensitive_variables("key", "context")
def token_list(request: HttpRequest) -> HttpResponse:
    """The person's tokens. A new one requires a fresh sign-in. Only the response that creates it shows its key."""
    form = TokenForm(request.POST or None, user=person_of(request))
    context: dict[str, Any] = {}
    if form.is_valid():
        try:
            token, key = _make(request, form)
            context = {"made": token, "key": key}
            form = TokenForm(None, user=person_of(request))
        except tokens.TooManyTokens as refusal:
            form.add_error(None, str(refusal))
    now = SYSTEM_CLOCK.now()
    latest = Deed.objects.order_by("-at", "-pk")[:_DEEDS_SHOWN]
    holding = tokens.valid_tokens(person_of(request)).prefetch_related(
        Prefetch("deeds", latest, to_attr="latest")
    )
    context |= {
        "section": "account",
        "form": form,
        "tokens": [(one, _soon(one, now), one.latest) for one in holding],
        "ended": tokens.ended_tokens(person_of(request))[:_ENDED_SHOWN],
        "base_url": settings.STARLING_BASE_URL,
    }
    return render(request, "api/tokens.html", context, status=422 if form.errors else 200)


@fresh_sign_in
def _make(request: HttpRequest, form: TokenForm) -> tuple[ApiToken, str]:
    return tokens.make_token(user=person_of(request), **form.given())


def _soon(token: ApiToken, now: Any) -> bool:
    return bool((token.expires_at - now).days < 7)


@signed_in
@require_POST
def token_revoke(request: HttpRequest, token_id: str) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user_id=request.user.pk)
    tokens.revoke_token(token=token)
    messages.success(request, f"“{token.name}” no longer works.")
    return redirect("api:tokens")


@signed_in
@require_safe
def reference_page(request: HttpRequest) -> HttpResponse:
    """The reference of the API, made from its OpenAPI description."""
    context = {
        "section": "account",
        "groups": reference.groups(),
        "models": reference.models(),
        "base_url": settings.STARLING_BASE_URL,
    }
    return render(request, "api/reference.html", context)


@require_safe
def client(request: HttpRequest) -> HttpResponseBase:
    """The client: one file that needs only Python."""
    return FileResponse(
        CLIENT.open("rb"), as_attachment=True, filename="starling.py", content_type="text/x-python"
    )


@require_safe
def command(request: HttpRequest) -> HttpResponse:
    """The command line: one executable file that needs only Python."""
    headers = {"Content-Disposition": 'attachment; filename="starling"'}
    return HttpResponse(packed_command(), content_type="application/zip", headers=headers)


@project_page()
@require_safe
def job_tensorboard(request: HttpRequest, project: Project, job_id: str) -> HttpResponseBase:
    return tensorboard_file(job_in(project, job_id))


@cache
def packed_command() -> bytes:
    """The file, the same bytes from the same sources. On the path, it also serves `from starling import Starling`."""
    packed = io.BytesIO()
    files = {f"starling/{path.name}": path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**files, "__main__.py": _MAIN}.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return _FIRST_LINE + packed.getvalue()
