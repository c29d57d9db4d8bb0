"""Prices that users put on machines of their own, and the rent that follows."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from cloud.money.billing.price_parts import own_price
from cloud.money.pricing import Part, RentPrice

LearnerPrice = Annotated[
    Decimal,
    Field(
        ge=0,
        le=10_000,
        title="Price of the learner",
        description="Rent from the job's start to its end for the machine that learns.",
        json_schema_extra={"unit": "USD/h", "advanced": True},
    ),
]


def rents(**usd_per_hour: Decimal) -> tuple[RentPrice, ...]:
    """Return the machines with a price, by name. Each is paid from the job's start to its end."""
    return tuple(RentPrice(name, (Part(own_price(name, usd)),)) for name, usd in usd_per_hour.items() if usd)
