"""Rent of a resource that outlived its run: the rent of all its time, less what the run has paid."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from cloud.money.billing.price_book import PriceBook, PriceError, UnknownSku
from cloud.money.pricing import RentPrice, total
from cloud.timing.virtual_time import NS, to_ns
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.money.models import RENT, Charge, ChargeState
from webapp.money.services import book_late
from webapp.resources.models import Holding


def book(holding: Holding, until: datetime, *, clock: Clock = SYSTEM_CLOCK) -> int:
    """Book the unpaid rent up to `until`, once. Returns the picodollars booked.

    Time counts from the intent: no provider counts from earlier.
    """
    rent, missing_ns = owed(holding, until)
    if rent is None or holding.job is None or not missing_ns:
        return 0
    stood_ns = _ns(until - holding.intended_at)
    lines = rent.lines(missing_ns)
    usage = {
        "resource": rent.resource,
        "from_s": (stood_ns - missing_ns) / NS,
        "to_s": stood_ns / NS,
        "late": True,
    }
    booked = book_late(
        account_id=holding.job.account.pk,
        epoch=holding.epoch,
        name=f"rent-{rent.resource}-late-{holding.pk}",
        lines=lines,
        usage=usage,
        clock=clock,
    )
    return total(lines) if booked else 0


def owed(holding: Holding, until: datetime) -> tuple[RentPrice | None, int]:
    """Its rent by time, and the nanoseconds up to `until` that are unpaid."""
    rent = rent_of(holding)
    if rent is None:
        return None, 0
    return rent, unpaid_ns(rent, _ns(until - holding.intended_at), _paid(holding, rent))


def unpaid_ns(rent: RentPrice, stood_ns: int, paid: int) -> int:
    """How much of `stood_ns` the amount `paid` does not cover."""
    due = total(rent.lines(stood_ns))
    # Slices are rounded one by one, the whole once: with started units a picodollar is no unit more.
    missing = due - paid - (2 if rent.round_up_s else 0)
    if due <= 0 or missing <= 0:
        return 0
    return min(stood_ns, -(-missing * rent.billed_ns(stood_ns) // due))


def rent_of(holding: Holding) -> RentPrice | None:
    """What the resource costs by time, at the prices of its job; None if that is unknown."""
    if holding.job is None:
        return None
    spec = holding.job.parsed_spec()
    try:
        tariff = spec.platform.tariff(PriceBook.load(), spec.training.memory_mb)
    except (PriceError, UnknownSku):
        return None
    resource, actors = holding.facts.get("resource"), holding.facts.get("actors")
    if tariff.pool is not None and isinstance(actors, int):
        return replace(tariff.pool.group(0, actors), resource=str(resource))
    return next((rent for rent in tariff.rents if rent.resource == resource), None)


def _paid(holding: Holding, rent: RentPrice) -> int:
    """What its run has paid for it or will pay: open slices of a dead run are booked in full."""
    assert holding.job is not None
    charges = Charge.objects.filter(
        account=holding.job.account,
        epoch=holding.epoch,
        kind=RENT,
        name__startswith=f"rent-{rent.resource}-",
        reserved_picodollars__gt=0,
    ).exclude(state=ChargeState.RELEASED)
    return sum(
        charge.reserved_picodollars if charge.settled_picodollars is None else charge.settled_picodollars
        for charge in charges.only("reserved_picodollars", "settled_picodollars")
    )


def _ns(span: timedelta) -> int:
    return to_ns(span.total_seconds())
