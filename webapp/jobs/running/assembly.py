"""Builds a job's platform: from a spec and a ledger, a platform that cannot spend without that ledger."""

from collections.abc import Callable
from typing import cast

from django.conf import settings

from cloud.money.billing.price_book import PriceBook
from cloud.money.metering import MeteredPlatform
from cloud.platforms.model import Access
from cloud.platforms.trajectory_cache import CachingPlatform, TrajectoryCache
from training.engine.ports import Ledger, Platform
from webapp.jobs.spec import JobSpec

_CACHE_PATIENCE_S = 2.0
_MEGABYTE = 10**6

Remember = Callable[[Platform], Platform]
"""Return a platform behind a cache."""


def assemble(
    spec: JobSpec,
    ledger: Ledger,
    access: Access | None = None,
    remember: Remember = lambda platform: platform,
) -> MeteredPlatform:
    """Return the spec's platform, opened, behind `ledger`. The caller closes it."""
    tariff = spec.platform.tariff(PriceBook.load(), spec.training.memory_mb)
    platform: Platform = spec.platform.open_for_job(access or Access())
    if not spec.simulated:
        # A simulated call takes its own virtual time, or its bill would not be the cloud's.
        platform = remember(platform)
    return MeteredPlatform(platform, ledger, tariff)


def with_cache(platform: Platform, job_id: str) -> Platform:
    """Return `platform` behind the job's cache; unchanged if the cache is off."""
    if not settings.STARLING_TRAJECTORY_CACHE_MB:
        return platform
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    store = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_CACHE_PATIENCE_S,
        socket_connect_timeout=_CACHE_PATIENCE_S,
        retry=Retry(NoBackoff(), 0),
    )
    cache = TrajectoryCache(store, job_id, settings.STARLING_TRAJECTORY_CACHE_MB * _MEGABYTE)
    return cast(Platform, CachingPlatform(platform, cache))
