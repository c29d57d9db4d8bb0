"""Builds a job's platform: from a spec and a ledger, a platform that cannot spend without that ledger."""

from collections.abc import Callable
from typing import cast

from django.conf import settings

from cloud.accounts.connections import AwsConnection, AzureConnection
from cloud.accounts.register import Holder
from cloud.money.billing.price_book import PriceBook
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.pulled import Reached
from cloud.platforms.trajectory_cache import CachingPlatform, TrajectoryCache
from training.engine.ports import Ledger, Platform
from webapp.jobs.spec import JobSpec

_CACHE_PATIENCE_S = 2.0
_MEGABYTE = 10**6

Connect = Callable[[str], AwsConnection | AzureConnection]
"""Return the connection with that id and its secrets."""

Reach = Callable[[], Reached]
"""Return the mailbox from which the run's actors fetch their calls."""

Hold = Callable[[str], Holder]
"""Return the holder of resources in the account of the connection with that id."""

Remember = Callable[[Platform], Platform]
"""Return a platform behind a cache."""


class NoConnection(ValueError):
    """The spec needs a cloud account, and this process has no connections."""


def assemble(
    spec: JobSpec,
    ledger: Ledger,
    connect: Connect | None = None,
    reach: Reach | None = None,
    hold: Hold | None = None,
    remember: Remember = lambda platform: platform,
) -> MeteredPlatform:
    """Return the spec's platform, opened, behind `ledger`. The caller closes it."""
    tariff = spec.platform.tariff(PriceBook.load(), spec.training.memory_mb)
    platform = _opened(spec, connect, reach, hold)
    if not spec.simulated:
        # A simulated call takes its own virtual time, or its bill would not be the cloud's.
        platform = remember(platform)
    return MeteredPlatform(platform, ledger, tariff)


def _opened(spec: JobSpec, connect: Connect | None, reach: Reach | None, hold: Hold | None) -> Platform:
    options = spec.platform
    if isinstance(options, LambdaOptions):
        if connect is None:
            raise NoConnection("AWS Lambda needs a connection of a project; launch the job in the dashboard.")
        holder = hold(options.connection) if hold is not None else None
        account = connect(options.connection)
        if not isinstance(account, AwsConnection):
            raise NoConnection("The connection of this job is not one to AWS.")
        return options.open(account, holder)
    if isinstance(options, AzureContainerOptions):
        if connect is None or reach is None or hold is None:
            raise NoConnection("Containers need a connection of a project; launch the job in the dashboard.")
        subscription = connect(options.connection)
        if not isinstance(subscription, AzureConnection):
            raise NoConnection("The connection of this job is not one to Azure.")
        return options.open(subscription, reach(), hold(options.connection))
    if isinstance(options, HostsOptions):
        if reach is None:
            raise NoConnection("Machines of yours call at the dashboard; launch the job there.")
        return options.open(reach())
    return options.open()


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
