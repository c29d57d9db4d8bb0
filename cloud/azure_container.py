"""What a job may choose of Azure Container Instances, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from cloud.billing.price_book import PriceBook
from cloud.billing.price_parts import own_price
from cloud.connections import AzureConnection
from cloud.pricing import Part, PoolPrice, Standing, Tariff
from training.frozen import Frozen

if TYPE_CHECKING:
    from cloud.azure.platform import AzureContainerPlatform
    from cloud.pulled import Reached
    from cloud.register import Holder

GROUP_VCPU = 4
GROUP_MEMORY_GB = 16


class AzureContainerOptions(Frozen):
    """Azure containers in a subscription of yours: groups that stand and fetch their work; the learner runs here."""

    kind: Literal["azure_container"] = "azure_container"
    connection: str = Field("", title="Connection", description="The Azure subscription to run in.")
    region: str = Field(
        "eastus",
        pattern=r"^[a-z][a-z0-9]{2,39}$",
        title="Region",
        description="That of the connection.",
        json_schema_extra={"follows": "connection"},
    )
    image: str = Field(
        "",
        max_length=300,
        title="Image",
        description="The one that the connection was set up with.",
        json_schema_extra={"follows": "connection"},
    )
    vcpu: int = Field(
        1,
        ge=1,
        le=GROUP_VCPU,
        title="Cores of an actor",
        json_schema_extra={"advanced": True},
    )
    memory_gb: int = Field(
        2,
        ge=1,
        le=GROUP_MEMORY_GB,
        title="Memory of an actor",
        description="Paid while it stands, used or not.",
        json_schema_extra={"advanced": True, "unit": "GB"},
    )
    containers_a_group: int = Field(
        4,
        ge=1,
        le=GROUP_VCPU,
        title="Actors a group",
        description="They come and go together. Azure starts 300 groups an hour.",
        json_schema_extra={"advanced": True},
    )
    most_actors: int = Field(
        100,
        ge=1,
        le=400,
        title="Actors at once",
        description="At most so many stand; further calls wait.",
        json_schema_extra={"advanced": True},
    )
    spot: bool = Field(
        False,
        title="Spot",
        description="Cheaper capacity that Azure may take back. No price of it is known, so no budget can hold it.",
        json_schema_extra={"advanced": True},
    )
    idle_s: float = Field(
        120.0,
        ge=10.0,
        le=3600.0,
        title="Kept when idle",
        description="So long an actor without work stays, and is paid, before it is given up.",
        json_schema_extra={"advanced": True, "unit": "s"},
    )
    start_cap_s: float = Field(
        300.0,
        ge=30.0,
        le=1800.0,
        title="Longest start",
        description="A group that has not come to work by then is given up.",
        json_schema_extra={"advanced": True, "unit": "s"},
    )
    learner_usd_per_hour: Decimal = Field(
        Decimal(0),
        ge=0,
        le=10_000,
        title="Price of the learner",
        description="Rent from the job's start to its end for the machine that learns.",
        json_schema_extra={"unit": "USD/h", "advanced": True},
    )

    @model_validator(mode="after")
    def _fits_into_a_group(self) -> Self:
        if self.containers_a_group * self.vcpu > GROUP_VCPU:
            raise ValueError(
                f"a group has {GROUP_VCPU} cores at most: fewer actors a group, or fewer cores each"
            )
        if self.containers_a_group * self.memory_gb > GROUP_MEMORY_GB:
            raise ValueError(
                f"a group has {GROUP_MEMORY_GB} GB at most: fewer actors a group, or less memory each"
            )
        return self

    def open(self, connection: AzureConnection, reached: Reached, holder: Holder) -> AzureContainerPlatform:
        from cloud.azure.platform import AzureContainerPlatform

        return AzureContainerPlatform(self, replace(connection, region=self.region), reached, holder)

    def tariff(self, book: PriceBook, memory_mb: int = 0) -> Tariff:
        """UnknownSku or UnknownPrice where the book has none for the region, as for spot anywhere."""
        ending = ".spot" if self.spot else ""
        actor = (
            Part(book.row(f"aci.vcpu.linux{ending}", self.region), self.vcpu),
            Part(book.row(f"aci.memory.linux{ending}", self.region), self.memory_gb),
        )
        standing: tuple[Standing, ...] = ()
        if self.learner_usd_per_hour:
            standing = (Standing("learner", (Part(own_price("learner", self.learner_usd_per_hour)),)),)
        pool = PoolPrice(actor, most=self.most_actors, idle_s=self.idle_s, in_groups=True)
        return Tariff(standing=standing, pool=pool)
