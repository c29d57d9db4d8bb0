"""The cache of trajectories of one job, where this installation has room for one."""

from __future__ import annotations

from typing import cast

from django.conf import settings

from cloud.trajectory_cache import Remembering, TrajectoryCache
from training.ports import Platform

_PATIENCE_S = 2.0
_MEGABYTE = 10**6


def remembered(platform: Platform, job_id: str) -> Platform:
    """`platform` behind the job's cache; as it is where the cache is switched off."""
    if not settings.STARLING_TRAJECTORY_CACHE_MB:
        return platform
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    store = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_PATIENCE_S,
        socket_connect_timeout=_PATIENCE_S,
        retry=Retry(NoBackoff(), 0),
    )
    cache = TrajectoryCache(store, job_id, settings.STARLING_TRAJECTORY_CACHE_MB * _MEGABYTE)
    return cast(Platform, Remembering(platform, cache))
