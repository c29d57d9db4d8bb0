"""Fresh sign-in: actions that outlast a session, or let more be spent, require the password again.

A stolen session must gain nothing permanent. People who signed in by a link have no password yet. They set one within
an hour of the link, so that a session that is stolen later cannot.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit

from allauth.account import app_settings
from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.account.internal.flows.reauthentication import reauthenticate_by_password, resume_request
from allauth.core.exceptions import ReauthenticationRequired
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from webapp.accounts.access import person_of

LINK_GOOD_FOR_S = 3600.0
_BY_LINK = "sign_in_link"
View = Callable[..., Any]


def is_fresh(request: HttpRequest) -> bool:
    """Whether this person gave the password in this session within the last minutes."""
    return person_of(request).has_usable_password() and _within(
        request, ("password",), app_settings.REAUTHENTICATION_TIMEOUT
    )


def may_set_first_password(request: HttpRequest) -> bool:
    """Whether this session began with a sign-in link within the last hour."""
    return _within(request, (_BY_LINK,), LINK_GOOD_FOR_S)


def record_sign_in_link(request: HttpRequest) -> None:
    """Record that a sign-in link has just started this session."""
    record_authentication(request, request.user, method=_BY_LINK)


def resume_request_after_password(request: HttpRequest) -> HttpResponseBase | None:
    """Resume the action that required a password, after the first one was set. None if no action waits."""
    reauthenticate_by_password(request)
    answer: HttpResponseBase | None = resume_request(request)
    return answer


def _within(request: HttpRequest, methods: tuple[str, ...], seconds: float) -> bool:
    records = get_authentication_records(request, request.user)
    latest = max((record["at"] for record in records if record["method"] in methods), default=0.0)
    return time.time() - latest < seconds


def fresh_sign_in(view: View) -> View:
    """Requires the password, or that a first one is set, before the view runs. The request resumes afterwards."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not is_fresh(request):
            raise ReauthenticationRequired
        return view(request, *args, **kwargs)

    return wrapped


def fresh_sign_in_for_secrets(view: View) -> View:
    """As `fresh_sign_in`, for forms with secrets: their data is not kept meanwhile, and the person sends it again."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if is_fresh(request):
            return view(request, *args, **kwargs)
        if request.method == "POST":
            messages.info(request, "Nothing was stored. Confirm that it is you, then enter it again.")
        return redirect(confirm_url(request, _page_before(request)))

    return wrapped


def confirm_url(request: HttpRequest, then: str) -> str:
    """The address of the page that takes the password, or sets the first one, and redirects to `then`."""
    first, *_ = get_adapter().get_reauthentication_methods(request.user)
    return f"{first['url']}?{urlencode({REDIRECT_FIELD_NAME: then})}"


def _page_before(request: HttpRequest) -> str:
    """The page that sent the form, if it is on this host. For a GET, the requested page."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    referer = urlsplit(request.headers.get("Referer", ""))
    return referer.path if referer.path and referer.netloc == request.get_host() else reverse("accounts:home")
