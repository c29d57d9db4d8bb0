"""Where a job would run, in numbers that can be drawn from their ranges, and the size of the fleet to simulate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from cloud.money.pricing import Tariff
from cloud.timing.forecasting.concurrency import SimulatedFlight, flight_of
from cloud.timing.forecasting.rounds import Rounds, next_attempt
from cloud.timing.forecasting.workload import Workload
from cloud.timing.numbers.profile import Pool, Profile
from cloud.timing.numbers.quantity import Quantity, quantities, with_values
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.core import SimulatedSetting, Simulation
from training.calls import KINDS
from training.loops.attempts import attempts_of
from training.loops.model import LoopOfAnyKind
from training.tasks.kinds import task_of
from training.tasks.training import Training

Name = tuple[str, ...]
_FLEET = 128
_CALLS_OF_A_DRAW = 1500
_CALLS_OF_A_FUNCTION = 4

# Resources that all actors share shrink with the fleet; the coordinator's time for each actor grows.
_SHARED = frozenset(
    {
        "concurrent",
        "starts_at_once",
        "starts_per_s",
        "creates_at_once",
        "creates_per_s",
        "most_actors",
        "coordinator_mbit_per_s",
    }
)
_EACH = frozenset({"coordinator_ms", "us_per_megabyte"})


@dataclass(frozen=True)
class Configuration:
    """A cloud, a stack, and what the job buys there.

    `longest_start_s`: the worst time until an actor has started. None on the simulated cloud, whose profile says it.
    """

    profile: Profile
    stack: Stack
    setting: SimulatedSetting
    tariff: Tariff
    longest_start_s: float | None = None

    def uncertain(self) -> dict[Name, Quantity]:
        """Return the numbers that may differ from their values. Numbers that a provider documents are taken as
        certain.
        """
        numbers: dict[Name, Quantity] = {}
        for part, model in (("profile", self.profile), ("stack", self.stack)):
            for path, quantity in quantities(model).items():
                if quantity.kind != "documented" and quantity.low < quantity.high:
                    numbers[part, *path] = quantity
        return numbers

    def at(self, quantiles: Mapping[Name, float]) -> Configuration:
        """Return this configuration with these numbers at these quantiles of their ranges."""

        def value_in(part: str) -> Callable[[Name, Quantity], float]:
            def value_of(path: Name, quantity: Quantity) -> float:
                quantile = quantiles.get((part, *path))
                return quantity.value if quantile is None else quantity.at(quantile)

            return value_of

        return Configuration(
            with_values(self.profile, value_in("profile")),
            with_values(self.stack, value_in("stack")),
            self.setting,
            self.tariff,
            self.longest_start_s,
        )

    def scaled_down(self, fewer: int) -> Configuration:
        """Return this configuration for a fleet of `fewer` times fewer actors, which then takes the same time."""
        if fewer == 1:
            return self

        def value_of(path: Name, quantity: Quantity) -> float:
            if path[-1] in _SHARED:
                return max(quantity.value / fewer, 1e-9 if "per_s" in path[-1] else 1.0)
            return quantity.value * fewer if path[-1] in _EACH else quantity.value

        profile = with_values(self.profile, value_of)
        actors: Any = profile.actors
        if isinstance(actors, Pool) and actors.units is not None:
            per_unit = max(1, round(actors.actors_per_unit / fewer))
            units = max(1, round(actors.units * actors.actors_per_unit / fewer / per_unit))
            actors = actors.model_copy(update={"units": units, "actors_per_unit": per_unit})
            profile = profile.model_copy(update={"actors": actors})
        setting = replace(self.setting, provisioned=ceil(self.setting.provisioned / fewer))
        stack = with_values(self.stack, value_of)
        return Configuration(profile, stack, setting, self.tariff, self.longest_start_s)

    def dry_run(self, works: Workload, loop: LoopOfAnyKind, seed: int) -> tuple[Rounds, SimulatedFlight]:
        """Return the beginning of a run here, with chance drawn from `seed`."""
        simulation = Simulation(self.profile, self.stack, replace(self.setting, seed=seed))
        attempts = {kind: attempts_of(works.training, kind) for kind in KINDS}
        flight = flight_of(simulation, attempts, next_attempt, self.tariff.pool)
        return Rounds(loop, works, flight), flight


@dataclass(frozen=True)
class Scale:
    """How much smaller the simulated job is than the real one.

    `fewer`: times fewer actors and trajectories, in loops that never wait for the slowest, so that only shares of
    lines and limits matter. `shorter`: times fewer trajectories in a round, if a round takes thousands from few
    actors, or times fewer calls in an epoch.
    """

    fewer: int = 1
    shorter: int = 1

    @staticmethod
    def of(training: Training, most_actors: int, rounds: int, fleet: int = _FLEET) -> Scale:
        """Return the scale for a trial of this many rounds with at most `fleet` actors."""
        loop = training.loop
        if loop.over_epochs:
            at_most = max(_CALLS_OF_A_FUNCTION * most_actors, _CALLS_OF_A_DRAW // (2 * rounds))
            return Scale(shorter=ceil(task_of(training).calls_an_epoch / at_most))
        if loop.waits_for_slowest:
            return Scale()
        a_round = loop.learns_from(most_actors)
        at_most = max(1, min(fleet, _CALLS_OF_A_DRAW // rounds))
        fewer = max(1, min(ceil(max(most_actors, a_round) / at_most), most_actors, a_round))
        return Scale(fewer, ceil(a_round / fewer / at_most))

    def loop(self, loop: LoopOfAnyKind) -> LoopOfAnyKind:
        return loop.learning_from(loop.learns_from(0) / self.fewer / self.shorter)

    def actors(self, actors: int) -> int:
        return max(1, round(actors / self.fewer))

    def works(self, training: Training) -> Workload:
        return Workload(training, fewer=self.fewer, shorter=self.shorter)
