"""Sessions of people who read pages while the database cannot be written."""

from __future__ import annotations

import logging

from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from webapp.database.faults import lacks_storage

log = logging.getLogger(__name__)
_READS = ("GET", "HEAD")


class SessionsOfReaders(SessionMiddleware):
    """Django's. A page that is read needs no write: what its session would remember, as the project opened last, is
    dropped while the disk is full. What people send still fails, because a sign-in that is not kept is none.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except (DatabaseError, SessionInterrupted) as error:
            if request.method not in _READS or not lacks_storage(error):
                raise
            log.warning("a session is not saved: %s", error)
            return response
