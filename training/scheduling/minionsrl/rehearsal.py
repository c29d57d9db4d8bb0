"""Rehearsals: episodes assembled from recorded rounds, from which a scheduler learns the basics at no cost.

For a decision of N actors at a return of G, one of the recorded rounds nearest in number of actors, return and round
is drawn, and its changes are applied: its gain in return, its seconds, its dollars. Nothing outside the recorded
range can be learned this way. So real episodes follow, and only those are ever shown as results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from training.engine.reports import RoundReport, Spend
from training.engine.seeds import derive
from training.scaling.agent_weights import as_text
from training.scaling.learned import Learned
from training.scaling.plan import Bounds
from training.scheduling.decisions import EpisodeResult
from training.scheduling.episode import episode_of
from training.scheduling.minionsrl.decisions import reached
from training.spec import RETURN

if TYPE_CHECKING:
    from training.scheduling.minionsrl.model import SchedulingSpec

_NEAREST = 5


@dataclass(frozen=True)
class _Step:
    report: RoundReport
    before: float
    gain: float


class Rehearsal:
    """A simulator made of recorded trainings of one workload."""

    def __init__(self, recorded: Sequence[Sequence[RoundReport]], spec: SchedulingSpec) -> None:
        """Raises ValueError if there is no round to rehearse with."""
        self._spec = spec
        self._decisions = spec.decisions(recorded)
        self._steps = [step for rounds in recorded for step in _steps(rounds)]
        if not self._steps:
            raise ValueError(
                "no recorded round has a return: run trainings with different numbers of actors first"
            )
        returns = [step.before for step in self._steps]
        self._span = max(max(returns) - min(returns), 1e-9)
        self._start = float(
            np.mean([step.before for step in self._steps if step.report.round_no <= 2] or returns)
        )
        self._places = np.array(
            [self._place(s.report.actors, s.before, s.report.round_no) for s in self._steps]
        )

    def play(
        self, weights: bytes, seeds: Sequence[int], budget_picodollars: int | None
    ) -> Sequence[EpisodeResult]:
        policy = self._spec.policy(as_text(weights), explore=True)
        played = [self.rounds_of(policy, seed, budget_picodollars) for seed in seeds]
        return [episode_of(rounds, self._decisions, weights, self._spec.spaces) for rounds in played]

    def rounds_of(self, policy: Learned, seed: int, budget_picodollars: int | None) -> list[RoundReport]:
        """Return one episode: to the target, to the budget, or to the last round allowed."""
        rng = np.random.Generator(np.random.PCG64(derive(seed, "rehearsal")))
        rounds: list[RoundReport] = []
        level, spent, steps = self._start, 0, 0
        for k in range(1, self._spec.rounds + 1):
            plan = policy.decide(rounds, Bounds(), derive(seed, "scaling", k), RETURN)
            step = self._drawn(plan.actors, level, k, rng)
            level += step.gain
            spent += step.report.cost_picodollars
            if budget_picodollars is not None and spent > budget_picodollars:
                break
            limit = budget_picodollars if budget_picodollars is not None else 0
            steps += step.report.progress
            rounds.append(
                step.report.model_copy(
                    update={
                        "round_no": k,
                        "actors": plan.actors,
                        "total_progress": steps,
                        "figures": step.report.figures.model_copy(update={"episode_return_mean": level}),
                        "spend": Spend(
                            spent_picodollars=spent, reserved_picodollars=0, limit_picodollars=limit
                        ),
                    }
                )
            )
            if reached(rounds, self._spec.target_return, self._spec.readings):
                break
        return rounds

    def _drawn(self, actors: int, level: float, k: int, rng: np.random.Generator) -> _Step:
        distances = np.abs(self._places - self._place(actors, level, k)).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[:_NEAREST]
        return self._steps[int(rng.choice(nearest))]

    def _place(self, actors: int, level: float, k: int) -> tuple[float, float, float]:
        """Return a round's coordinates: a doubling of actors counts as much as a quarter of the range of returns."""
        return float(np.log2(actors)), 4.0 * level / self._span, 0.5 * k / self._spec.rounds


def _steps(rounds: Sequence[RoundReport]) -> list[_Step]:
    """Return each round with the return before it and its gain; rounds without a return are left out."""
    steps: list[_Step] = []
    before: float | None = None
    for report in rounds:
        now = report.score
        if now is not None and before is not None:
            steps.append(_Step(report, before, now - before))
        before = now if now is not None else before
    return steps
