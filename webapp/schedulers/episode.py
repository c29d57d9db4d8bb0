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
    """The episode was stopped before its end, so it does not count."""


@dataclass(frozen=True)
class Played:
    """The rounds that ran, their cost in the ledger including rent, and how long they took on this machine."""

    rounds: tuple[RoundReport, ...]
    cost_picodollars: int
    wall_s: float


class Stage:
    """Plays episodes of one scheduler. After each round it calls `on_round`, and ends if `stopping` returns True."""

    def __init__(
        self,
        spec: SchedulingSpec,
        platform: SimulatedOptions,
        budget_picodollars: int,
        on_round: Callable[[Sequence[RoundReport]], None],
        stopping: Callable[[], bool],
    ) -> None:
        self._spec = spec
        self._platform = platform
        self._budget_usd = Decimal(budget_picodollars) / PICODOLLARS_PER_USD
        self._on_round = on_round
        self._stopping = stopping

    def play(self, scaling: AnyScaling, seed: int) -> Played:
        """Play an episode to its target, budget, last round or the workload's own end. Raises Interrupted."""
        run = Headless(self._job(scaling, seed % _SEEDS))
        rounds: list[RoundReport] = []
        begun_s = time.monotonic()
        for event in run.events():
            if not isinstance(event, RoundFinished):
                continue
            rounds.append(event.report)
            self._on_round(rounds)
            mean = event.report.score
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
