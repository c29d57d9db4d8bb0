"""Who may send a body larger than a megabyte: owners who upload a cloud's bill. Decided from the headers alone."""

from __future__ import annotations

import io
from collections.abc import MutableMapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest
from django.urls import Resolver404, resolve

from webapp.accounts.access import membership_for
from webapp.api.auth import project_of, require_scope
from webapp.api.models import Scope
from webapp.api.problems import Refused
from webapp.api.tokens import caller_of_key
from webapp.reports.bills.bill_reading import MOST_UPLOADED_BYTES

PAGE, API = "reports:hand_over_bill", "api_v1:list_bills"
BILL_BODY_BYTES = MOST_UPLOADED_BYTES + 2**20
"""The file, and the form around it."""


def upload_limit(scope: MutableMapping[str, Any]) -> int:
    """How many bytes the body may have, if this address takes bills and the sender is an owner; otherwise 0."""
    if scope["method"] != "POST":
        return 0
    try:
        place = resolve(scope["path"])
    except Resolver404:
        return 0
    if place.view_name not in (PAGE, API):
        return 0
    request, slug = ASGIRequest(dict(scope), io.BytesIO()), place.kwargs["slug"]
    may = _may_by_session if place.view_name == PAGE else _may_by_token
    return BILL_BODY_BYTES if may(request, slug) else 0


def _may_by_session(request: HttpRequest, slug: str) -> bool:
    person: Any = _person_of_session(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    try:
        membership_for(person, slug, "owner")
    except (Http404, PermissionDenied):
        return False
    return True


def _may_by_token(request: HttpRequest, slug: str) -> bool:
    kind, _, key = request.headers.get("Authorization", "").partition(" ")
    caller = caller_of_key(key) if kind.lower() == "bearer" else None
    if caller is None:
        return False
    request.auth = caller  # type: ignore[attr-defined]
    try:
        require_scope(request, Scope.MANAGE)
        project_of(request, slug, "owner")
    except (Refused, Http404, PermissionDenied):
        return False
    return True


def _person_of_session(session_key: str | None) -> AbstractBaseUser | AnonymousUser:
    """The person of the session in the database, before a middleware runs. Anonymous if it has ended."""
    engine: Any = import_module(settings.SESSION_ENGINE)
    return get_user(SimpleNamespace(session=engine.SessionStore(session_key)))  # type: ignore[arg-type]
