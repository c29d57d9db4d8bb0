"""Azure Container Instances as a platform: groups of containers that fetch their work from our gateway."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from cloud.accounts.connections import AzureConnection
from cloud.accounts.register import Holder, group_name
from cloud.actor.protocol import TOKEN_VARIABLE
from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import PoolPrice, PricedPart, Tariff
from cloud.money.rents.payer import NoPayer, Payer
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.container_lifecycle import EMULATED_PACE, ContainerLifecycle, Order, Pace
from cloud.platforms.azure.create_limit import CreateLimit
from cloud.platforms.azure.fleet import Fleet, FleetPlan
from cloud.platforms.azure.groups import AzureGroups, Container
from cloud.platforms.model import Access, Cloud, PlatformModel
from cloud.platforms.outcomes import Learner
from cloud.platforms.own_machines import LearnerPrice, rents
from cloud.platforms.pulled import Patience, PulledCalls, ReachableMailbox
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers.profile import Profile
from cloud.workers.execution import Deliver
from cloud.workers.learner_thread import LearnerThread
from training.base_model import setting
from training.engine.messages import BlobRef, Call, Outcome
from training.tasks.training import Training

GROUP_VCPU = 4
GROUP_MEMORY_GB = 16
_ATTEND_S = 0.5
_CLOSE_PATIENCE_S = 180.0
_TAGS_LAST_S = 1800.0


class AzureContainerOptions(PlatformModel):
    """Azure containers in a subscription of yours: groups of actors that fetch their work; the learner runs here."""

    kind: Literal["azure_container"] = "azure_container"
    connection: str = setting("", "Connection", "The Azure subscription to run in.", own=True)
    region: str = setting(
        "eastus", "Region", "That of the connection.", pattern=r"^[a-z][a-z0-9]{2,39}$", follows="connection"
    )
    image: str = setting(
        "", "Image", "The one that the connection was set up with.", max_length=300, follows="connection"
    )
    vcpu: int = setting(1, "Cores of an actor", ge=1, le=GROUP_VCPU, advanced=True)
    memory_gb: int = setting(
        2,
        "Memory of an actor",
        "Paid while the actor runs, used or not.",
        ge=1,
        le=GROUP_MEMORY_GB,
        unit="GB",
        advanced=True,
    )
    containers_a_group: int = setting(
        4,
        "Actors a group",
        "They start and end together. Azure starts 300 groups an hour.",
        ge=1,
        le=GROUP_VCPU,
        advanced=True,
    )
    most_actors: int = setting(
        100, "Actors at once", "At most so many run; further calls wait.", ge=1, le=400, advanced=True
    )
    spot: bool = setting(
        False,
        "Spot",
        "Cheaper capacity that Azure may take back. No price of it is known, so no budget can hold it.",
        advanced=True,
    )
    idle_s: float = setting(
        120.0,
        "Kept when idle",
        "How long an actor without work is kept, and paid.",
        ge=10.0,
        le=3600.0,
        unit="s",
        advanced=True,
    )
    start_cap_s: float = setting(
        300.0,
        "Longest start",
        "A group that has not fetched work by then is deleted.",
        ge=30.0,
        le=1800.0,
        unit="s",
        own=True,
        advanced=True,
    )
    learner_usd_per_hour: LearnerPrice = Decimal(0)

    place: ClassVar[str] = "Azure Container Instances"
    report_name: ClassVar[str] = "Azure"
    cloud: ClassVar[Cloud | None] = "azure"
    actors_have_torch: ClassVar[bool] = False
    actors_have_packages: ClassVar[bool] = False
    actor_word: ClassVar[str] = "container"

    @property
    def subject(self) -> str:
        return "standing containers"

    @property
    def actor_slots(self) -> int:
        return self.containers_a_group

    @property
    def actor_memory_mb(self) -> tuple[str, int]:
        return "memory_gb", self.memory_gb * 1024

    @property
    def alike(self) -> SimulatedOptions:
        return SimulatedOptions(profile="aci-today")

    @property
    def longest_start_s(self) -> float:
        return self.start_cap_s

    def forecast_profile(self, training: Training) -> Profile:
        """Return Azure with actors of as many cores as the job buys."""
        profile = profiles.load(self.alike.profile)
        actors = profile.actors.model_copy(update={"cores_per_actor": float(self.vcpu)})
        return profile.model_copy(update={"actors": actors})

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

    def open(
        self, connection: AzureConnection, reached: ReachableMailbox, holder: Holder
    ) -> AzureContainerPlatform:
        return AzureContainerPlatform(self, replace(connection, region=self.region), reached, holder)

    def open_for_job(self, access: Access) -> AzureContainerPlatform:
        connection = access.connection(self.connection, AzureConnection)
        return self.open(connection, access.reach(), access.hold(self.connection))

    def tariff(self, book: PriceBook, memory_mb: int = 0) -> Tariff:
        """Return the prices. Raises UnknownSku or UnknownPrice if the book has none, as for spot in every region."""
        ending = ".spot" if self.spot else ""
        actor = (
            PricedPart(book.row(f"aci.vcpu.linux{ending}", self.region), self.vcpu),
            PricedPart(book.row(f"aci.memory.linux{ending}", self.region), self.memory_gb),
        )
        pool = PoolPrice(actor, most=self.most_actors, idle_s=self.idle_s, in_groups=True)
        return Tariff(rents=rents(learner=self.learner_usd_per_hour), pool=pool)


class AzureContainerPlatform:
    """Implements `training.engine.ports.Platform` and `cloud.money.rents.payer.RentsItsResources`. Its clock is this
    machine's.

    Groups are created while calls wait for actors, and deleted when they have been idle for a while. A call fails with
    Azure's reason if no group can be created; it is refused if no group can be paid for.
    """

    def __init__(
        self,
        options: AzureContainerOptions,
        connection: AzureConnection,
        reached: ReachableMailbox,
        holder: Holder,
        *,
        pace: Pace | None = None,
        patience: Patience | None = None,
        learner: Callable[[Deliver], Learner] = LearnerThread,
    ) -> None:
        self._options = options
        self._connection = connection
        self._reached = reached
        self._holder = holder
        self._patience = patience or Patience(begin_s=options.start_cap_s + 300.0)
        self._calls = PulledCalls(reached.mailbox, self._patience, learner=learner)
        # One try: retries of the SDK would hide whether a create succeeded.
        self._clients = AzureClients(connection, tries=1)
        lifecycle = ContainerLifecycle(
            AzureGroups(self._clients),
            CreateLimit(holder.creates),
            reached.mailbox.wake,
            pace or (EMULATED_PACE if connection.emulated else Pace()),
        )
        plan = FleetPlan(
            most=options.most_actors,
            a_group=options.containers_a_group,
            idle_s=options.idle_s,
            start_cap_s=options.start_cap_s,
            stay_s=self._patience.stay_s,
            order=self._order,
        )
        self.fleet = Fleet(plan, lifecycle, holder.register, NoPayer(), now_s=self._calls.now_s)
        self._in_flight: dict[str, Call] = {}
        self._ready: deque[Outcome] = deque()
        self._closed = False

    def set_payer(self, payer: Payer) -> None:
        self.fleet.payer = payer

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._calls.publish(version, blob)

    def submit(self, call: Call) -> None:
        self._in_flight[call.id] = call
        self._calls.submit(call)

    def next(self, timeout_s: float) -> Outcome | None:
        end_s = self.now_s() + timeout_s
        while self._in_flight:
            if not self._closed and not self._ready:
                self._attend()
            if self._ready:
                outcome = self._ready.popleft()
            else:
                left_s = max(0.0, end_s - self.now_s())
                arrived = self._calls.next(min(_ATTEND_S, left_s))
                if arrived is None:
                    if self._closed or left_s <= 0.0:
                        return None
                    continue
                outcome = arrived
            if self._in_flight.pop(outcome.call_id, None) is not None:
                return outcome
        return None

    def throttling_reasons(self) -> str:
        """Implements `cloud.platforms.throttling.ReportsThrottling`."""
        return self.fleet.throttling_reasons()

    def cancel(self, call_id: str) -> None:
        self._calls.cancel(call_id)

    def now_s(self) -> float:
        return self._calls.now_s()

    def close(self) -> None:
        """Tell the actors to leave and delete their groups. The register knows groups that outlast this call."""
        if self._closed:
            return
        self._closed = True
        self._calls.close()
        self._in_flight.clear()
        self._ready.clear()
        self.fleet.close(_CLOSE_PATIENCE_S)
        self._clients.close()

    def _attend(self) -> None:
        waiting = [call.id for call in self._in_flight.values() if call.where == "actor"]
        self.fleet.attend(len(waiting), self._calls.pullers())
        if self.fleet.unpaid or self.fleet.failing:
            for call_id in waiting:
                self._give_up(call_id)

    def _give_up(self, call_id: str) -> None:
        """End a call for which no group can be paid for or created."""
        self._calls.cancel(call_id)
        status, code = ("refused", "budget") if self.fleet.unpaid else ("failed", "no_actors")
        reason = self.fleet.unpaid or self.fleet.failing
        # Outcomes that arrived before the cancellation are returned as they are.
        while (outcome := self._calls.next(0.0)) is not None:
            if outcome.call_id == call_id and outcome.status == "cancelled":
                changes = {"status": status, "reason_code": code, "reason": reason}
                outcome = outcome.model_copy(update=changes)
            self._ready.append(outcome)

    def _order(self, number: int, actors: int) -> Order:
        options, holder = self._options, self._holder
        name = group_name(self._connection.prefix, holder.job, holder.epoch, number)
        command = (
            *("python", "-m", "cloud.actor.puller", "--gateway", self._reached.address),
            *("--unit", name, "--live", f"{self._patience.stay_s:g}"),
            *("--unreachable", f"{self._patience.stay_s:g}", "--cores", f"{options.vcpu}"),
        )
        containers = tuple(
            Container(
                name=f"actor-{at + 1}",
                image=options.image,
                command=command,
                vcpu=options.vcpu,
                memory_gb=options.memory_gb,
                variables={},
                secrets={TOKEN_VARIABLE: self._reached.new_token()},
            )
            for at in range(actors)
        )
        return Order(name, containers, self._tags, options.spot)

    def _tags(self) -> Mapping[str, str]:
        """Return the group's tags, which say until when it may exist. They are renewed while it is wanted."""
        return self._holder.tags(time.time() + _TAGS_LAST_S)
