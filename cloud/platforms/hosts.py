"""Machines of the user's own as a platform: any that runs a puller with this run's token works for it."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Literal

from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import Tariff
from cloud.platforms.model import Access
from cloud.platforms.own_machines import LearnerPrice, OwnMachines, rents
from cloud.platforms.pulled import Patience, PulledCalls, ReachableMailbox
from cloud.timing.forecasting.this_machine import assumed, machines_like_this_one
from cloud.timing.numbers.profile import Profile
from training.base_model import setting
from training.tasks.training import Training

# Heartbeats come four times as often.
_LEASE_S = 20.0
# A machine leaves by itself so long after the last sign of this process.
_STAY_S = 300.0


class HostsOptions(OwnMachines):
    """Machines of yours: any that reach this site can sample; the job's page shows the command they run."""

    kind: Literal["hosts"] = "hosts"
    machines: int = setting(
        1, "Machines", "How many will come. The job begins with the first, and pays for all.", ge=1, le=1000
    )
    processes: int = setting(
        1, "Actors on each", "Processes that sample; as many as a machine has cores to spare.", ge=1, le=256
    )
    machine_usd_per_hour: Decimal = setting(
        Decimal(0),
        "Price of a machine",
        "Rent of each from the job's start to its end, whether it has come or not.",
        ge=0,
        le=10_000,
        unit="USD/h",
        advanced=True,
    )
    wait_min: float = setting(
        60.0,
        "Wait for machines",
        "A call that no machine has fetched by then fails. The job fails after a few such calls.",
        gt=0.0,
        le=1440.0,
        unit="min",
        advanced=True,
    )
    learner_usd_per_hour: LearnerPrice = Decimal(0)

    place: ClassVar[str] = "machines of yours"
    people_start_actors: ClassVar[bool] = True
    actors_have_torch: ClassVar[bool] = False

    @property
    def actors(self) -> int:
        return self.machines * self.processes

    @property
    def subject(self) -> str:
        return "your machines"

    @property
    def actor_slots(self) -> int:
        return self.actors

    def forecast_profile(self, training: Training) -> Profile:
        """Return unknown machines: they are assumed to be like this one, with a core for each actor, over a common
        line.
        """
        network = {
            "round_trip_s": assumed(0.05, 0.005, 0.3, "a long poll and an answer over the internet"),
            "actor_mbit_per_s": assumed(
                50.0, 5.0, 1000.0, "the line of a home, an office or a computing centre"
            ),
            "coordinator_mbit_per_s": assumed(500.0, 50.0, 8000.0, "the line of the machine that learns"),
        }
        return machines_like_this_one(self.actors, 1.0, network)

    def open_for_job(self, access: Access) -> PulledCalls:
        return self.open(access.reach())

    def open(self, reached: ReachableMailbox) -> PulledCalls:
        """Return the platform. No machine has to be there yet; closing it tells all of them to leave."""
        return PulledCalls(
            reached.mailbox, Patience(begin_s=self.wait_min * 60.0, lease_s=_LEASE_S, stay_s=_STAY_S)
        )

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        """Return the rent of the machines that have a price. Calls themselves cost nothing."""
        machines = self.machine_usd_per_hour * self.machines
        return Tariff(rents=rents(learner=self.learner_usd_per_hour, machines=machines))
