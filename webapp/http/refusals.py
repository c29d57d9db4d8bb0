"""Refused actions: the page above the action's address opens again and says why."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from webapp.http.responses import page_above


class ActionRefused(Exception):
    """Nothing was changed. The text says why, for a page and for the API."""


def back_if_refused(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except ActionRefused as refusal:
            messages.error(request, str(refusal))
            return redirect(page_above(request.path))

    return wrapped
