"""Health checks of the web process, for supervisors and load balancers.

Redis carries hints only, so its absence is reported but does not make us unready: pages poll instead.
"""

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

_REDIS_TIMEOUT_S = 0.5


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """200 as soon as requests are answered at all."""
    return HttpResponse("alive\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the database answers and has this program's tables, else 503. The body says which part is missing."""
    database = _database()
    ready = database == "ready"
    return JsonResponse(
        {"ready": ready, "database": database, "redis": _redis()}, status=200 if ready else 503
    )


def _database() -> str:
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return "migrations are missing"
    except DatabaseError:
        return "unreachable"
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
