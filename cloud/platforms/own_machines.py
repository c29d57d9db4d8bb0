"""Machines of the user's own: what their platforms share, prices that users put on them, and the rent that follows."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field

from cloud.money.billing.price_parts import own_price
from cloud.money.pricing import PricedPart, RentPrice
from cloud.platforms.model import PlatformModel
from cloud.platforms.simulated_options import SimulatedOptions

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


class OwnMachines(PlatformModel):
    """Options of a platform whose machines are the user's own."""

    machines_stay: ClassVar[bool] = True

    @property
    def alike(self) -> SimulatedOptions:
        return SimulatedOptions(profile="one-machine")

    @property
    def longest_start_s(self) -> float:
        """By then a machine's processes have started, if the machine itself is running."""
        return 60.0


def rents(**usd_per_hour: Decimal) -> tuple[RentPrice, ...]:
    """Return the machines with a price, by name. Each is paid from the job's start to its end."""
    return tuple(
        RentPrice(name, (PricedPart(own_price(name, usd)),)) for name, usd in usd_per_hour.items() if usd
    )
