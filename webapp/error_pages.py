"""Error pages: why something is gone, or a reference under which the log has the details of our fault."""

from __future__ import annotations

import logging
import secrets

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an error of Starling. It makes no query, as the database may be what failed."""
    reference = secrets.token_hex(4).upper()
    logger.error("Reference %s: %s %s failed, as logged above.", reference, request.method, request.path)
    return HttpResponse(render_to_string("500.html", {"reference": reference}), status=500)


class Gone(Http404):
    """The requested object no longer exists. The message says what happened to it."""


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for an unknown address. It gives details only for objects that are gone, so it reveals nothing else."""
    if isinstance(exception, Gone):
        return render(request, "410.html", {"why": str(exception)}, status=410)
    return render(request, "404.html", status=404)
