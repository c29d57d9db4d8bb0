"""A job's options on a simulated cloud, and what it buys there."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import ValidationInfo, field_validator

from cloud.money.billing.price_book import PriceBook, UnknownSku
from cloud.money.billing.tariffs import Purchase, tariff_of
from cloud.money.pricing import Tariff
from cloud.platforms.model import Access, PlatformModel
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Functions, Pool
from cloud.timing.simulation.core import SimulatedSetting
from cloud.workers.executor import cores
from training.base_model import setting

if TYPE_CHECKING:
    from cloud.platforms.simulated import SimulatedPlatform

FUNCTION_SIZES_MB = range(128, 10_241)
"""AWS Lambda developer guide: from 128 MB to 10,240 MB, by 1 MB."""


def _is_one(value: int) -> bool:
    """Stored specs do not hold what they did not hold before and what is as it was."""
    return value == 1


class SimulatedOptions(PlatformModel):
    """Simulated cloud: real training here, with the time and the bill that a cloud would have had."""

    kind: Literal["simulated"] = "simulated"
    profile: str = setting(
        "lambda", "Cloud", "How actors start, run, wait and fail there. Every number has a source."
    )
    stack: str = setting(
        stacks.OURS, "Software", "Our own engine as measured, or an RLlib-like one as in the papers."
    )
    learner: Literal["server", "function"] = setting(
        "server",
        "Learner's place",
        "A machine paid from the job's start to its end, or a function paid only while it learns.",
        advanced=True,
    )
    learner_sku: str | None = setting(
        None, "Learner's machine", "Empty: the one that the cloud's profile names.", advanced=True
    )
    learner_machines: int = setting(
        1,
        "Learner's machines",
        "Machines of this kind, each rented whole. Calls that learn at once are spread over their GPUs.",
        ge=1,
        le=64,
        exclude_if=_is_one,
        advanced=True,
    )
    learner_lanes: int = setting(
        1,
        "Learning at once",
        "Calls that learn at the same time, over all the learner's machines. More than GPUs share them.",
        ge=1,
        le=1024,
        exclude_if=_is_one,
        unit="calls",
        advanced=True,
    )
    learners_per_gpu: int = setting(
        1,
        "Learners on a GPU",
        "Learner functions that run on one GPU. They slow each other, and each pays its share. With 1 every"
        " function has its own.",
        ge=1,
        le=64,
        exclude_if=_is_one,
        unit="functions",
        advanced=True,
    )
    region: str | None = setting(None, "Region", "Empty: the profile's.", advanced=True)
    provisioned: int = setting(
        0,
        "Kept warm",
        "Functions kept ready without a cold start, paid by started five minutes, busy or not.",
        ge=0,
        le=10_000,
        unit="functions",
        advanced=True,
    )
    cache_sku: str | None = setting(
        None,
        "Cache's machine",
        "Empty: trajectories come back in the answer, no cache is rented.",
        advanced=True,
    )
    seed: int = setting(
        0,
        "Seed of the cloud",
        "Start-up times, stragglers and failures are drawn from it.",
        ge=0,
        le=2**31 - 1,
        advanced=True,
    )
    workers: int | None = setting(
        None,
        "Workers",
        "Processes on this machine that do the real work; empty means one for each core.",
        ge=1,
        le=64,
        advanced=True,
    )

    @field_validator("profile")
    @classmethod
    def known_profile(cls, value: str) -> str:
        profiles.load(value)
        return value

    @field_validator("stack")
    @classmethod
    def known_stack(cls, value: str) -> str:
        stacks.load(value)
        return value

    @field_validator("learner_sku", "cache_sku")
    @classmethod
    def priced_machine(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and "profile" in info.data:
            _require_machine(value, profiles.load(info.data["profile"]).region)
        return value

    @field_validator("provisioned")
    @classmethod
    def provisioned_needs_functions(cls, value: int, info: ValidationInfo) -> int:
        if value and "profile" in info.data:
            actors = profiles.load(info.data["profile"]).actors
            if not isinstance(actors, Functions) or actors.provisioned_sku is None:
                raise ValueError(f"{info.data['profile']} offers no functions kept warm for money")
        return value

    place: ClassVar[str] = "the simulated cloud"
    computes_here: ClassVar[bool] = True
    is_simulated: ClassVar[bool] = True

    @property
    def subject(self) -> str:
        actors = profiles.load(self.profile).actors
        if isinstance(actors, Functions):
            return "functions"
        return "standing containers" if actors.units is None else "these machines"

    @property
    def alike(self) -> SimulatedOptions:
        return self

    @property
    def actor_slots(self) -> int:
        actors = profiles.load(self.profile).actors
        if isinstance(actors, Pool) and actors.units is not None:
            return actors.units * actors.actors_per_unit
        return 1

    @property
    def longest_start_s(self) -> None:
        return None

    @property
    def has_functions(self) -> bool:
        return isinstance(profiles.load(self.profile).actors, Functions)

    def processes_here(self, actors: int) -> int:
        return self.workers or cores()

    def memory_sizes_mb(self, requested_mb: int) -> Sequence[int]:
        """Functions that are billed by their memory have any size; other actors come in one."""
        actors = profiles.load(self.profile).actors
        if isinstance(actors, Functions) and actors.duration_sku is not None and not self.provisioned:
            return FUNCTION_SIZES_MB
        return (requested_mb,)

    @property
    def machine(self) -> str:
        return self.learner_sku or profiles.load(self.profile).default_learner_sku

    def devices(self, machine: str) -> int:
        """Return how many GPUs calls that learn at once are spread over: those of the machines, of which one without
        any counts as one, or as many as functions need.
        """
        if self.learner == "function":
            return ceil(self.learner_lanes / self.learners_per_gpu)
        return self.learner_machines * max(1, machines.machine(machine).gpus)

    def open(self) -> SimulatedPlatform:
        from cloud.platforms.simulated import SimulatedPlatform  # imports these options itself

        return SimulatedPlatform(self)

    def open_for_job(self, access: Access) -> SimulatedPlatform:
        return self.open()

    def setting(self) -> SimulatedSetting:
        return SimulatedSetting(
            learner=self.learner,
            learner_gpu=machines.machine(self.machine).gpus > 0,
            learner_gpus=self.devices(self.machine),
            learner_lanes=self.learner_lanes,
            provisioned=self.provisioned,
            seed=self.seed,
        )

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        """Return everything that the job would buy on this cloud, for actors of `memory_mb`."""
        profile = profiles.load(self.profile)
        purchase = Purchase(
            self.learner,
            self.machine,
            self.region or profile.region,
            memory_mb,
            self.provisioned,
            self.cache_sku,
            self.learner_machines,
            self.learners_per_gpu,
        )
        return tariff_of(profile, purchase, book)


def _require_machine(sku: str, region: str) -> None:
    try:
        row = PriceBook.load().row(sku, region)
    except UnknownSku as error:
        raise ValueError(str(error)) from None
    if row.unit != "h":
        raise ValueError(f"{sku} is not a machine: it is priced per {row.unit}")
