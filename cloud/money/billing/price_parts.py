"""Things to buy, composed from a price book: machines, containers, functions, a learner's share."""

from __future__ import annotations

import datetime
from decimal import Decimal

from cloud.money.billing.price_book import PriceBook, PriceRow
from cloud.money.pricing import FunctionPrice, PricedPart, RentPrice, RunningPrice

MB_PER_GB = 1024
PROVISIONED_UNIT_S = 300
_OVERHEAD = ("paper.vm_overhead", "paper")


def functions(
    book: PriceBook, region: str, start_cap_s: float, *, provisioned: bool = False
) -> FunctionPrice:
    """Return the price of functions like Lambda's. With `provisioned`, time on provisioned instances has its own
    price.
    """
    ready = book.row("lambda.provisioned.duration.x86", region) if provisioned else None
    duration = book.row("lambda.duration.x86", region)
    return FunctionPrice(duration, book.row("lambda.request", region), start_cap_s, ready)


def provisioned_capacity(book: PriceBook, region: str, memory_mb: int, instances: int) -> RentPrice:
    """Return the price of provisioned instances, paid from the job's start, busy or not, by started five minutes."""
    row = book.row("lambda.provisioned.x86", region)
    part = PricedPart(row, memory_mb * instances, MB_PER_GB)
    return RentPrice("provisioned", (part,), round_up_s=PROVISIONED_UNIT_S)


def machine_parts(
    book: PriceBook, sku: str, region: str, *, count: int = 1, ip_and_disk: bool = True
) -> tuple[PricedPart, ...]:
    """Return machines by the hour and, as the papers count it, the IP address and disk of each."""
    parts = (PricedPart(book.row(sku, region), count),)
    return (*parts, PricedPart(book.row(*_OVERHEAD), count)) if ip_and_disk else parts


def container_parts(book: PriceBook, region: str, vcpu: int, memory_mb: int) -> tuple[PricedPart, ...]:
    """Return containers with this many cores and this much memory in all."""
    cores = PricedPart(book.row("aci.vcpu.linux", region), vcpu)
    return cores, PricedPart(book.row("aci.memory.linux", region), memory_mb, MB_PER_GB)


def learner_function(parts: tuple[PricedPart, ...], start_cap_s: float, *, sharers: int = 1) -> RunningPrice:
    """Return the price of a learner that is paid only while it runs, at the price of `parts` by the second.

    With `sharers`, this many learners share the machine, and each pays its part.
    """
    return RunningPrice(share_of(parts, sharers), start_cap_s)


def share_of(parts: tuple[PricedPart, ...], sharers: int) -> tuple[PricedPart, ...]:
    """Return one sharer's part of things that several use together."""
    return tuple(PricedPart(part.row, part.count, part.per * sharers) for part in parts)


def cache_host(book: PriceBook, sku: str, region: str) -> RentPrice:
    """Return the price of a separate machine that stores trajectories and weights for the functions."""
    return RentPrice("cache", machine_parts(book, sku, region))


def own_price(resource: str, usd: Decimal) -> PriceRow:
    """Return the price of an hour of a user's own machine, as the user set it."""
    return PriceRow(
        sku=f"local.{resource}",
        region="here",
        unit="h",
        usd=usd,
        as_of=datetime.date.today(),
        source="the job's own options",
        kind="custom",
    )
