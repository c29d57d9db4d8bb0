"""A platform for tests alone: a spare machine at a price, whose processes sample."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import Tariff
from cloud.platforms.local import LocalOptions, LocalPlatform
from cloud.platforms.model import Access, PlatformModel
from cloud.platforms.own_machines import rents
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecasting.this_machine import machines_like_this_one
from cloud.timing.numbers.profile import Profile
from training.tasks.training import Training


class SpareOptions(PlatformModel):
    """A spare machine: its processes sample, and it is paid by the hour."""

    kind: Literal["spare"] = "spare"
    processes: int = Field(2, ge=1, le=64, title="Processes of the spare machine")
    usd_per_hour: Decimal = Field(Decimal(6), ge=0, le=100, title="Price of the spare machine")

    place: ClassVar[str] = "a spare machine"
    report_name: ClassVar[str] = "Spare machines"
    computes_here: ClassVar[bool] = True
    machines_stay: ClassVar[bool] = True

    @property
    def subject(self) -> str:
        return "the spare machine"

    @property
    def alike(self) -> SimulatedOptions:
        return SimulatedOptions(profile="one-small-machine")

    @property
    def actor_slots(self) -> int:
        return self.processes

    @property
    def longest_start_s(self) -> float:
        return 30.0

    def forecast_profile(self, training: Training) -> Profile:
        return machines_like_this_one(self.processes, 1.0)

    def processes_here(self, actors: int) -> int:
        return self.processes

    def open(self) -> LocalPlatform:
        return LocalPlatform(LocalOptions(workers=self.processes))

    def open_for_job(self, access: Access) -> LocalPlatform:
        return self.open()

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        return Tariff(rents=rents(workers=self.usd_per_hour))
