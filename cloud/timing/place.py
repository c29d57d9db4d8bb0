"""Where a job is timed and priced: a cloud, a stack, what the job buys there, and a price book."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.tariffs import Purchase, tariff_of
from cloud.money.pricing import Tariff
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.core import SimulatedSetting


@dataclass(frozen=True)
class TimingPlace:
    """`options` say what is bought; the profile and the stack may differ from those they name."""

    profile: Profile
    stack: Stack
    options: SimulatedOptions
    book: PriceBook

    @staticmethod
    def named(profile: str, stack: str, options: SimulatedOptions, book: PriceBook) -> TimingPlace:
        """Return a place with a profile and a stack by name or file. On another cloud than `options` name, the job
        buys that cloud's defaults.

        Raises ProfileError or OSError if there is no such profile or stack.
        """
        if profile != options.profile:
            options = SimulatedOptions(
                learner=options.learner, learner_lanes=options.learner_lanes, seed=options.seed
            )
        return TimingPlace(
            profiles.read(Path(profile)) if _is_file(profile) else profiles.load(profile),
            stacks.read(Path(stack)) if _is_file(stack) else stacks.load(stack),
            options,
            book,
        )

    @staticmethod
    def of(options: SimulatedOptions, book: PriceBook) -> TimingPlace:
        return TimingPlace(profiles.load(options.profile), stacks.load(options.stack), options, book)

    @property
    def machine(self) -> str:
        """The learner's machine."""
        return self.options.learner_sku or self.profile.default_learner_sku

    def setting(self, seed: int) -> SimulatedSetting:
        return SimulatedSetting(
            learner=self.options.learner,
            learner_gpu=machines.machine(self.machine).gpus > 0,
            learner_gpus=self.options.devices(self.machine),
            learner_lanes=self.options.learner_lanes,
            provisioned=self.options.provisioned,
            seed=seed,
        )

    def tariff(self, memory_mb: int) -> Tariff:
        """Return the tariff. Raises UnknownSku if the book has no price for something that is bought."""
        purchase = Purchase(
            self.options.learner,
            self.machine,
            self.options.region or self.profile.region,
            memory_mb,
            self.options.provisioned,
            self.options.cache_sku,
            self.options.learner_machines,
            self.options.learners_per_gpu,
        )
        return tariff_of(self.profile, purchase, self.book)


def _is_file(name: str) -> bool:
    return name.endswith(".toml")
