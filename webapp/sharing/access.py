"""Who may open shared pages: a person with the secret of a working link, a limited number of times a minute.

Shared pages use no session and set no cookie. Unknown, revoked and expired secrets get the same answer, so that
guessing reveals nothing; and few may be tried a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from webapp.accounts.limits.counters import RateLimits
from webapp.sharing.models import SharedLink
from webapp.sharing.services import find_link

REQUESTS_A_MINUTE = 300
"""Of one address."""
MISSES_A_MINUTE = 20
"""Of one address: secrets that no working link has."""
pace = RateLimits()
SharedView = Callable[..., HttpResponseBase]


def allowed(address: str) -> bool:
    """Count a request of this address. False if it had enough in this minute."""
    return pace.take(f"shared:{address}", REQUESTS_A_MINUTE, time.time())[0] >= 0


def missed(address: str) -> bool:
    """Count an unknown secret. True if this address tried too many in this minute."""
    return pace.take(f"shared-miss:{address}", MISSES_A_MINUTE, time.time())[0] < 0


def shared_page(view: SharedView) -> SharedView:
    """For views below /s/<secret>/: passes the link to the view. 404 without one, 429 for too many requests."""

    @require_safe
    @sensitive_variables("secret")
    @wraps(view)
    def wrapped(request: HttpRequest, secret: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return _private(_answer(view, request, secret, *args, **kwargs))

    return wrapped


@sensitive_variables("secret")
def _answer(
    view: SharedView, request: HttpRequest, secret: str, *args: Any, **kwargs: Any
) -> HttpResponseBase:
    address = request.META.get("REMOTE_ADDR", "")
    if not allowed(address):
        return _too_many(request)
    link = find_link(secret)
    if link is None:
        return _too_many(request) if missed(address) else gone(request)
    return view(request, link, *args, **kwargs)


def gone(request: HttpRequest) -> HttpResponse:
    return render(request, "sharing/gone.html", status=404)


def _too_many(request: HttpRequest) -> HttpResponse:
    answer = render(request, "sharing/too_many.html", status=429)
    answer["Retry-After"] = "60"
    return answer


def _private(answer: HttpResponseBase) -> HttpResponseBase:
    """Kept by no cache and no search engine, and its address is named to no other site."""
    answer["Cache-Control"] = "no-store"
    answer["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    answer["Referrer-Policy"] = "no-referrer"
    return answer


def link_kinds(link: SharedLink) -> str:
    """The template of the link's page."""
    return f"sharing/{link.kind}.html"
