"""The tariff of a job on a profile: its resources with prices from a book."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import (
    MB_PER_GB,
    PROVISIONED_UNIT_S,
    cache_host,
    learner_function,
    machine_parts,
)
from cloud.money.pricing import (
    CallPrice,
    FunctionPrice,
    PoolPrice,
    PricedPart,
    RentPrice,
    RunningPrice,
    Tariff,
)
from cloud.timing.numbers.profile import Functions, Pool, Profile


@dataclass(frozen=True)
class Purchase:
    """What a job buys from a cloud beyond the profile's own resources."""

    learner: Literal["server", "function"]
    learner_sku: str
    region: str
    memory_mb: int
    provisioned: int = 0
    cache_sku: str | None = None
    learner_machines: int = 1
    learners_per_gpu: int = 1


def tariff_of(profile: Profile, purchase: Purchase, book: PriceBook) -> Tariff:
    """Return the tariff. Raises UnknownSku if the book has no price for something that the job would buy."""
    prices = list(_kept_actors(profile, purchase, book))
    learner: CallPrice | None = None
    if purchase.learner == "server":
        parts = machine_parts(book, purchase.learner_sku, purchase.region, count=purchase.learner_machines)
        prices.append(RentPrice("learner", parts))
    else:
        parts = machine_parts(book, purchase.learner_sku, purchase.region, ip_and_disk=False)
        start_s, sharers = profile.learner.function_start_s.high, purchase.learners_per_gpu
        learner = learner_function(parts, start_s, sharers=sharers)
    if purchase.cache_sku is not None:
        prices.append(cache_host(book, purchase.cache_sku, purchase.region))
    return Tariff(
        actor=_function_price(profile, purchase, book),
        learner=learner,
        rents=tuple(prices),
        pool=_pool_price(profile, purchase, book),
    )


def _function_price(profile: Profile, purchase: Purchase, book: PriceBook) -> CallPrice | None:
    actors, region = profile.actors, purchase.region
    if isinstance(actors, Pool):
        return None
    cap_s = actors.cold_cap_s.value
    if actors.duration_sku is None:
        return RunningPrice(_container(actors, book, region), start_cap_s=cap_s)
    provisioned = actors.provisioned_duration_sku if purchase.provisioned else None
    return FunctionPrice(
        duration=book.row(actors.duration_sku, region),
        request=book.row(actors.request_sku, region) if actors.request_sku else None,
        start_cap_s=cap_s,
        provisioned=book.row(provisioned, region) if provisioned else None,
        storage=tuple(
            book.row(sku, region) for sku in (profile.storage_put_sku, profile.storage_get_sku) if sku
        ),
    )


def _kept_actors(profile: Profile, purchase: Purchase, book: PriceBook) -> list[RentPrice]:
    """Return the machines of a cluster, and the functions that are kept warm."""
    actors = profile.actors
    if isinstance(actors, Pool):
        if actors.machine_sku is None or actors.units is None:
            return []
        parts = machine_parts(book, actors.machine_sku, purchase.region, count=actors.units)
        return [RentPrice("actors", parts)]
    if not purchase.provisioned or actors.provisioned_sku is None:
        return []
    row = book.row(actors.provisioned_sku, purchase.region)
    part = PricedPart(row, purchase.provisioned * purchase.memory_mb, MB_PER_GB)
    return [RentPrice("provisioned", (part,), PROVISIONED_UNIT_S)]


def _pool_price(profile: Profile, purchase: Purchase, book: PriceBook) -> PoolPrice | None:
    actors = profile.actors
    if isinstance(actors, Functions) or actors.core_sku is None:
        return None
    most, idle_s = int(actors.most_actors.value), actors.idle_s.value
    return PoolPrice(_container(actors, book, purchase.region), most=most, idle_s=idle_s)


def _container(actors: Functions | Pool, book: PriceBook, region: str) -> tuple[PricedPart, ...]:
    """Return one container: its cores and its memory, in hundredths."""
    cores = 1.0 if isinstance(actors, Functions) else actors.cores_per_actor
    memory_gb = (
        actors.whole_core_mb.value / MB_PER_GB
        if isinstance(actors, Functions)
        else actors.memory_gb_per_actor
    )
    bought = ((actors.core_sku, cores), (actors.memory_sku, memory_gb))
    return tuple(PricedPart(book.row(sku, region), round(100 * amount), 100) for sku, amount in bought if sku)
