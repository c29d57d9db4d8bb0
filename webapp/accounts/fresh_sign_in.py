"""A fresh sign-in: what outlasts a session, or lets more be spent, wants the password that was just given.

A stolen session must win nothing that stays. People who came by a sign-in link have no password yet: they set one
first, within an hour of the link, so that a session of theirs that is stolen later cannot.
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

LINK_GOOD_FOR_S = 3600.0
_BY_LINK = "sign_in_link"
View = Callable[..., Any]


def is_fresh(request: HttpRequest) -> bool:
    """Whether this person gave the password in this session within the last minutes."""
    return request.user.has_usable_password() and _within(
        request, ("password",), app_settings.REAUTHENTICATION_TIMEOUT
    )


def may_set_first_password(request: HttpRequest) -> bool:
    """Whether this session began with a sign-in link within the last hour."""
    return _within(request, (_BY_LINK,), LINK_GOOD_FOR_S)


def note_link(request: HttpRequest) -> None:
    """This session was just begun with a sign-in link."""
    record_authentication(request, request.user, method=_BY_LINK)


def go_on(request: HttpRequest) -> HttpResponseBase | None:
    """What the first password was set for, which is as good as giving it: the answer, if anything waited for it."""
    reauthenticate_by_password(request)
    answer: HttpResponseBase | None = resume_request(request)
    return answer


def _within(request: HttpRequest, methods: tuple[str, ...], seconds: float) -> bool:
    records = get_authentication_records(request, request.user)
    latest = max((one["at"] for one in records if one["method"] in methods), default=0.0)
    return time.time() - latest < seconds


def fresh_sign_in(view: View) -> View:
    """Asks for the password first, or for the first one to be set, and does afterwards what was asked for."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not is_fresh(request):
            raise ReauthenticationRequired
        return view(request, *args, **kwargs)

    return wrapped


def fresh_sign_in_for_secrets(view: View) -> View:
    """The same for forms with secrets: what was sent is not kept while the password is asked for. It is given again."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if is_fresh(request):
            return view(request, *args, **kwargs)
        if request.method == "POST":
            messages.info(request, "Nothing was stored. Confirm that it is you, then give it once more.")
        return redirect(confirm_url(request, _page_before(request)))

    return wrapped


def confirm_url(request: HttpRequest, then: str) -> str:
    """The address that asks for the password, or sets the first one, and goes on to `then`."""
    first, *_ = get_adapter().get_reauthentication_methods(request.user)
    return f"{first['url']}?{urlencode({REDIRECT_FIELD_NAME: then})}"


def _page_before(request: HttpRequest) -> str:
    """The page that a form was sent from, if it is ours; a page that was asked for itself."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    referer = urlsplit(request.headers.get("Referer", ""))
    return referer.path if referer.path and referer.netloc == request.get_host() else reverse("accounts:home")
