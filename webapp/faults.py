"""What people see when a page of ours fails: a sentence, and a reference by which the log line is found."""

from __future__ import annotations

import logging
import secrets

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for a fault of ours. It asks the database for nothing: that may be what failed."""
    reference = secrets.token_hex(4).upper()
    logger.error("Reference %s: %s %s failed, as logged above.", reference, request.method, request.path)
    return HttpResponse(render_to_string("500.html", {"reference": reference}), status=500)
