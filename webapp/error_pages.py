"""What people see instead of a page: why something is gone, or a reference by which the log tells of our fault."""

from __future__ import annotations

import logging
import secrets

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for a fault of ours. It asks the database for nothing: that may be what failed."""
    reference = secrets.token_hex(4).upper()
    logger.error("Reference %s: %s %s failed, as logged above.", reference, request.method, request.path)
    return HttpResponse(render_to_string("500.html", {"reference": reference}), status=500)


class Gone(Http404):
    """What was asked for was here and is not any more. The text says what became of it."""


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page where there is nothing. Only of what is gone does it say more: the rest is nobody's business."""
    if isinstance(exception, Gone):
        return render(request, "410.html", {"why": str(exception)}, status=410)
    return render(request, "404.html", status=404)
