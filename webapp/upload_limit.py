"""Who may send a body larger than a megabyte: owners a cloud's bill, editors a table of data. Decided from the headers
alone.
"""

from __future__ import annotations

import io
from collections.abc import MutableMapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

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
from webapp.api.models import TokenScope
from webapp.api.problems import ApiRefused
from webapp.api.tokens import caller_of_key
from webapp.datasets.files import MOST_UPLOADED_BYTES as MOST_TABLE_BYTES
from webapp.reports.bills.bill_reading import MOST_UPLOADED_BYTES as MOST_BILL_BYTES

_FORM_BYTES = 2**20


class Upload(NamedTuple):
    """An address that takes a large file. Pages know people by their session; `scope` is that of an API's token."""

    needs: str
    most_bytes: int
    scope: TokenScope | None = None

    @property
    def body_bytes(self) -> int:
        """The file, and the form around it."""
        return self.most_bytes + _FORM_BYTES


UPLOADS = {
    "reports:hand_over_bill": Upload("owner", MOST_BILL_BYTES),
    "api_v1:list_bills": Upload("owner", MOST_BILL_BYTES, TokenScope.MANAGE),
    "datasets:upload": Upload("editor", MOST_TABLE_BYTES),
    "api_v1:list_data_sets": Upload("editor", MOST_TABLE_BYTES, TokenScope.JOBS),
}
"""By the name of the address."""


def upload_limit(scope: MutableMapping[str, Any]) -> int:
    """How many bytes the body may have, if this address takes a file and the sender may send one; otherwise 0."""
    if scope["method"] != "POST":
        return 0
    try:
        place = resolve(scope["path"])
    except Resolver404:
        return 0
    upload = UPLOADS.get(place.view_name)
    if upload is None:
        return 0
    request, slug = ASGIRequest(dict(scope), io.BytesIO()), place.kwargs["slug"]
    if upload.scope is None:
        may = _may_by_session(request, slug, upload.needs)
    else:
        may = _may_by_token(request, slug, upload.needs, upload.scope)
    return upload.body_bytes if may else 0


def _may_by_session(request: HttpRequest, slug: str, needs: str) -> bool:
    person: Any = _person_of_session(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    try:
        membership_for(person, slug, needs)
    except (Http404, PermissionDenied):
        return False
    return True


def _may_by_token(request: HttpRequest, slug: str, needs: str, scope: TokenScope) -> bool:
    kind, _, key = request.headers.get("Authorization", "").partition(" ")
    caller = caller_of_key(key) if kind.lower() == "bearer" else None
    if caller is None:
        return False
    request.auth = caller  # type: ignore[attr-defined]
    try:
        require_scope(request, scope)
        project_of(request, slug, needs)
    except (ApiRefused, Http404, PermissionDenied):
        return False
    return True


def _person_of_session(session_key: str | None) -> AbstractBaseUser | AnonymousUser:
    """The person of the session in the database, before a middleware runs. Anonymous if it has ended."""
    engine: Any = import_module(settings.SESSION_ENGINE)
    return get_user(SimpleNamespace(session=engine.SessionStore(session_key)))  # type: ignore[arg-type]
