"""Health checks of the web process, for supervisors and load balancers.

Redis carries hints only, so its absence is reported but does not make us unready: pages poll instead.
"""

import tempfile
import time

import redis
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.limits.models import Counted
from webapp.database.schema import is_behind

_REDIS_TIMEOUT_S = 0.5
_PROBE = "readiness"
# Larger than a page of the database and a block of a file system, so that it needs room.
_PROBE_TEXT = "ready " * 2048


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """200 as soon as requests are answered at all."""
    return HttpResponse("alive\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the database and the data folder can be read and written, else 503. The body says which part fails."""
    database, folder = _database(), _folder()
    ready = database == folder == "ready"
    parts = {"ready": ready, "database": database, "folder": folder, "redis": _redis()}
    return JsonResponse(parts, status=200 if ready else 503)


def _database() -> str:
    try:
        if is_behind():
            return "migrations are missing"
    except DatabaseError:
        return "unreachable"
    try:
        Counted.objects.update_or_create(
            key=_PROBE, defaults={"value": _PROBE_TEXT, "expires_unix_s": time.time()}
        )
    except DatabaseError:
        return "cannot be written"
    return "ready"


def _folder() -> str:
    try:
        with tempfile.TemporaryFile(dir=settings.STARLING_DATA) as file:
            file.write(_PROBE_TEXT.encode())
            file.flush()
    except OSError as error:
        return f"cannot be written: {(error.strerror or str(error)).lower()}"
    return "ready"


def _redis() -> str:
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=_REDIS_TIMEOUT_S,
        socket_timeout=_REDIS_TIMEOUT_S,
        retry=None,
    )
    try:
        client.ping()
    except redis.RedisError:
        return "unreachable"
    finally:
        client.close()
    return "ready"
