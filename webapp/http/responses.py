"""Responses of every page: compressed pages, refused downloads, error pages, and error reports without values."""

from __future__ import annotations

import logging
import re
import secrets
import sys
from collections.abc import Callable, ItemsView
from typing import Any, TypeVar

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.views.debug import SafeExceptionReporterFilter

from webapp.database.storage_faults import storage_fault

Found = TypeVar("Found")
_COMPRESSED = ("text/html", "application/json", "application/problem+json")


class CompressedPages(GZipMiddleware):
    """Django's, random padding included, for pages and figures: a list of jobs becomes a ninth of its size.

    What is a file already (a film, a policy, a report) goes out as it is, and so does what carries an ETag: compressed,
    the ETag would have to be a weak one, and programs could not say with it what they want to change.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in _COMPRESSED or response.has_header("ETag"):
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed


PRESS_AGAIN = "Nothing was changed just now. To do it, press the button again."


class ActionsAskedAgain:
    """Sends a browser that opens the address of an action (by signing in after a button, or by loading its answer
    again) to the page above it, which then says that nothing was changed.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        opened = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if response.status_code != 405 or not opened or not (page := page_above(request.path)):
            return response
        messages.warning(request, PRESS_AGAIN)
        return redirect(page)


def page_above(path: str) -> str:
    """Return the nearest address above that is not one of an action. Empty if there is none."""
    parts = path.strip("/").split("/")
    for count in range(len(parts) - 1, 0, -1):
        above = f"/{'/'.join(parts[:count])}/"
        try:
            view = resolve(above).func
        except Resolver404:
            continue
        if not getattr(view, "post_only", False):
            return above
    return ""


logger = logging.getLogger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an error of Starling, or of its disk. It makes no query, as the database may be what failed."""
    fault = storage_fault(sys.exception())
    if fault is not None:
        logger.error("%s %s: %s", request.method, request.path, fault.why)
        return HttpResponse(render_to_string("storage_fault.html", {"fault": fault}), status=fault.status)
    reference = secrets.token_hex(4).upper()
    logger.error("Reference %s: %s %s failed, as logged above.", reference, request.method, request.path)
    return HttpResponse(render_to_string("500.html", {"reference": reference}), status=500)


class GoneObject(Http404):
    """The requested object no longer exists. The message says what happened to it."""


def or_404(row: Found | None, kind: str) -> Found:
    """What was found of this kind. Http404 if it is None."""
    if row is None:
        raise Http404(f"There is no such {kind} in this project.")
    return row


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for an unknown address. It gives details only for objects that are gone, so it reveals nothing else."""
    if isinstance(exception, GoneObject):
        return render(request, "410.html", {"why": str(exception)}, status=410)
    return render(request, "404.html", status=404)


def unknown_words(request: HttpRequest, *takes: str) -> str:
    """A sentence that names unknown parameters of the address; empty if there are none."""
    strange = [name for name in request.GET if name not in takes]
    if not strange:
        return ""
    return f"This address does not take {', '.join(strange)}. It takes {', '.join(takes) or 'nothing'}."


def refused(words: str) -> HttpResponse:
    """The response that refuses a download, with the reason."""
    return HttpResponse(f"{words}\n", content_type="text/plain; charset=utf-8", status=400)


HIDDEN = "(not shown)"
_SECRET_ADDRESS = re.compile(r"(/(?:s|shared|join|sign-in)/)[^/\s\"']+")


class AddressRedaction(logging.Filter):
    """Hides the secrets of links in log messages: readers of a log must not be able to open them."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = _hide_secrets(record.msg)
        if isinstance(record.args, tuple):  # kept apart: the web server's formatter reads them one by one
            record.args = tuple(_hide_secrets(arg) for arg in record.args)
        return True


def _hide_secrets(value: Any) -> Any:
    return _SECRET_ADDRESS.sub(rf"\g<1>{HIDDEN}", value) if isinstance(value, str) else value


class ValueRedaction(SafeExceptionReporterFilter):
    """Always hides posted values and local variables: debugging pages are copied into tickets too."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_post_parameters(self, request: HttpRequest | None) -> dict[str, Any]:
        return {} if request is None else dict.fromkeys(request.POST, HIDDEN)

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: Any
    ) -> ItemsView[str, Any]:
        return dict.fromkeys(tb_frame.f_locals, HIDDEN).items()
