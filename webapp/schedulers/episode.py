"""One real episode: a whole training on the simulated cloud, by the engine, behind a ledger that holds its budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cloud.simulated_options import SimulatedOptions
from training.messages import RoundFinished
from training.reports import RoundReport
from training.scaling import AnyScaling
from training.scheduling.model import SchedulingSpec
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD

_SEEDS = 2**31


class Interrupted(Exception):
    """Asked to stop in the middle of an episode: it does not count."""


@dataclass(frozen=True)
class Played:
    """What really ran, with all it cost in the ledger, standing machines too, and how long it took here."""

    rounds: tuple[RoundReport, ...]
    cost_picodollars: int
    wall_s: float


class Stage:
    """Where episodes of one scheduler are played. `told` hears of each round, `stopping` is asked after each."""

    def __init__(
        self,
        spec: SchedulingSpec,
        platform: SimulatedOptions,
        budget_picodollars: int,
        told: Callable[[Sequence[RoundReport]], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._spec = spec
        self._platform = platform
        self._budget_usd = Decimal(budget_picodollars) / PICODOLLARS_PER_USD
        self._told = told
        self._stopping = stopping

    def play(self, scaling: AnyScaling, seed: int) -> Played:
        """To the target, the budget, the last round or the workload's own end. Interrupted if it is to stop."""
        run = Headless(self._job(scaling, seed % _SEEDS))
        rounds: list[RoundReport] = []
        begun_s = time.monotonic()
        for event in run.events():
            if not isinstance(event, RoundFinished):
                continue
            rounds.append(event.report)
            self._told(rounds)
            mean = event.report.episode_return_mean
            if self._stopping() or (mean is not None and mean >= self._spec.target_return):
                run.stop()
        if self._stopping():
            raise Interrupted
        return Played(tuple(rounds), run.spent_picodollars, time.monotonic() - begun_s)

    def _job(self, scaling: AnyScaling, seed: int) -> JobSpec:
        workload = self._spec.workload
        own = workload.stop
        rounds = self._spec.rounds if own.rounds is None else min(own.rounds, self._spec.rounds)
        stop = own.model_copy(update={"rounds": rounds, "target_return": None})
        training = workload.model_copy(update={"scaling": scaling, "seed": seed, "stop": stop})
        platform = self._platform.model_copy(update={"seed": seed})
        return JobSpec(name="episode", training=training, platform=platform, budget_usd=self._budget_usd)
