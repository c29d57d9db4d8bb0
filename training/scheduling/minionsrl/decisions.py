"""One training as an episode of MinionsRL's scheduler: from rounds to states, actions and rewards.

    r_k = −β P_k     and at the end, unless the target was reached within the budget:  + min(0, max_k R̄_k − J)

`cost` charges dollars instead of seconds: the variant that the paper mentions for users to whom money matters more.
If no episode ended, the whole target was missed. A normalised reward is in units of a usual round and of the target,
so that neither dominates the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from training.engine.reports import RoundReport
from training.scheduling.decisions import PICODOLLARS, Floats, UsualRound
from training.scheduling.minionsrl.state import MinionsScales, state_of

if TYPE_CHECKING:
    from training.scheduling.minionsrl.model import SchedulingSpec


def best_return(rounds: Sequence[RoundReport], readings: int = 1) -> float | None:
    """Return the highest return that was held for so many readings in a row: the lowest of them. With fewer readings in
    all, the lowest of these.
    """
    returns = [report.score for report in rounds if report.score is not None]
    held = min(readings, len(returns))
    return max((min(returns[i : i + held]) for i in range(len(returns) - held + 1) if held), default=None)


def reached(rounds: Sequence[RoundReport], target_return: float, readings: int = 1) -> bool:
    """Whether it held its target for so many readings, where it ended."""
    known = sum(report.score is not None for report in rounds)
    best = best_return(rounds, readings)
    return known >= readings and best is not None and best >= target_return


def rewards_of(
    rounds: Sequence[RoundReport], spec: SchedulingSpec, usual: UsualRound
) -> npt.NDArray[np.float32]:
    """Return a reward for each round; an episode without rounds has none."""
    if spec.objective == "time":
        charged, unit = [report.total_s for report in rounds], usual.round_s
    else:
        charged, unit = [report.cost_picodollars / PICODOLLARS for report in rounds], usual.round_usd
    rewards = -spec.beta * np.array(charged, dtype=np.float64)
    if spec.reward == "normalised":
        rewards /= unit
    if len(rewards) and not reached(rounds, spec.target_return, spec.readings):
        rewards[-1] += _missed(rounds, spec)
    return rewards.astype(np.float32)


def score_of(rounds: Sequence[RoundReport], spec: SchedulingSpec, usual: UsualRound) -> float:
    """Return the sum of all rewards of an episode. An episode without rounds, whose budget was too small for the
    first one, scores as if all rounds had been paid for in vain: otherwise it would score best because it cost
    nothing.
    """
    if len(rounds):
        return float(rewards_of(rounds, spec, usual).sum())
    unit = usual.round_s if spec.objective == "time" else usual.round_usd
    return _missed(rounds, spec) - spec.beta * spec.rounds * (1.0 if spec.reward == "normalised" else unit)


def _missed(rounds: Sequence[RoundReport], spec: SchedulingSpec) -> float:
    """Return how far from the target it ended; below 0."""
    best = best_return(rounds, spec.readings)
    # Held for too few readings, the target was missed by nothing but time, which was charged.
    missed = min(0.0, best - spec.target_return) if best is not None else -abs(spec.target_return)
    return missed / max(abs(spec.target_return), 1e-9) if spec.reward == "normalised" else missed


@dataclass(frozen=True)
class ActorDecisions:
    """How MinionsRL's agent reads the rounds of a training."""

    spec: SchedulingSpec
    usual: UsualRound

    def states(self, rounds: Sequence[RoundReport]) -> Floats:
        scales = MinionsScales(target_return=self.spec.target_return, rounds=self.spec.rounds)
        seen = [state_of(rounds[:i], self.spec.state, scales) for i in range(len(rounds) + 1)]
        return np.stack(seen)

    def actions(self, rounds: Sequence[RoundReport]) -> npt.NDArray[np.int64]:
        """A bound may have changed the drawn action; PPO learns from the action that was carried out."""
        actors = np.array([report.actors - 1 for report in rounds], dtype=np.int64)
        return actors.clip(0, self.spec.actors_max - 1)

    def rewards(self, rounds: Sequence[RoundReport]) -> Floats:
        return rewards_of(rounds, self.spec, self.usual)

    def score(self, rounds: Sequence[RoundReport]) -> float:
        return score_of(rounds, self.spec, self.usual)

    def best(self, rounds: Sequence[RoundReport]) -> float | None:
        return best_return(rounds)

    def reached(self, rounds: Sequence[RoundReport]) -> bool:
        return reached(rounds, self.spec.target_return, self.spec.readings)
