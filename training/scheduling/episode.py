"""One training as an episode of the scheduler: from rounds to states, actions and rewards.

    r_k = −β P_k     and at the end, unless the target was reached within the budget:  + min(0, max_k R̄_k − J)

`cost` charges dollars instead of seconds: the variant that the paper mentions for users to whom money matters more.
If no episode ended, the whole target was missed. A normalised reward is in units of a usual round and of the target,
so that neither dominates the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from training.batch import Batch
from training.inference import NumpyPolicy
from training.reports import RoundReport
from training.scaling.learned import Learned
from training.scheduling.model import SchedulingSpec
from training.scheduling.state import PICODOLLARS


@dataclass(frozen=True)
class UsualRound:
    """A usual round of this workload: the unit of normalised rewards."""

    round_s: float
    round_usd: float

    @staticmethod
    def of(rounds: Sequence[RoundReport]) -> UsualRound:
        """Return the means, or 1 where there is no round."""
        seconds = float(np.mean([one.total_s for one in rounds])) if rounds else 0.0
        dollars = float(np.mean([one.cost_picodollars for one in rounds])) / PICODOLLARS if rounds else 0.0
        return UsualRound(seconds if seconds > 0 else 1.0, dollars if dollars > 0 else 1.0)


def best_return(rounds: Sequence[RoundReport], readings: int = 1) -> float | None:
    """Return the highest return that was held for so many readings in a row: the lowest of them. With fewer readings in
    all, the lowest of these.
    """
    returns = [one.score for one in rounds if one.score is not None]
    held = min(readings, len(returns))
    return max((min(returns[i : i + held]) for i in range(len(returns) - held + 1) if held), default=None)


def reached(rounds: Sequence[RoundReport], target_return: float, readings: int = 1) -> bool:
    """Whether it held its target for so many readings, where it ended."""
    known = sum(one.score is not None for one in rounds)
    best = best_return(rounds, readings)
    return known >= readings and best is not None and best >= target_return


def rewards_of(
    rounds: Sequence[RoundReport], spec: SchedulingSpec, usual: UsualRound
) -> npt.NDArray[np.float32]:
    """Return a reward for each round; an episode without rounds has none."""
    if spec.objective == "time":
        charged, one = [report.total_s for report in rounds], usual.round_s
    else:
        charged, one = [report.cost_picodollars / PICODOLLARS for report in rounds], usual.round_usd
    rewards = -spec.beta * np.array(charged, dtype=np.float64)
    if spec.reward == "normalised":
        rewards /= one
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
    one = usual.round_s if spec.objective == "time" else usual.round_usd
    return _missed(rounds, spec) - spec.beta * spec.rounds * (1.0 if spec.reward == "normalised" else one)


def _missed(rounds: Sequence[RoundReport], spec: SchedulingSpec) -> float:
    """Return how far from the target it ended; below 0."""
    best = best_return(rounds, spec.readings)
    # Held for too few readings, the target was missed by nothing but time, which was charged.
    missed = min(0.0, best - spec.target_return) if best is not None else -abs(spec.target_return)
    return missed / max(abs(spec.target_return), 1e-9) if spec.reward == "normalised" else missed


@dataclass(frozen=True)
class ScoredEpisode:
    """An episode to learn from: its rounds, at least one, and a reward for each."""

    rounds: Sequence[RoundReport]
    rewards: npt.NDArray[np.float32]


def batch_of(lessons: Sequence[ScoredEpisode], policy: Learned, weights: bytes) -> Batch:
    """Return episodes one after the other as PPO learns from them; `policy` decided with `weights`."""
    return concatenate([_batch_of(one, policy, weights) for one in lessons])


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Return batches one after the other; each ends with the end of an episode."""
    along = (
        *("observations", "actions", "log_probs", "rewards", "terminated", "truncated"),
        *("discounted_returns", "episode_returns", "episode_lengths"),
    )
    together = {name: np.concatenate([getattr(one, name) for one in batches]) for name in along}
    return replace(batches[-1], **together)


def _batch_of(lesson: ScoredEpisode, policy: Learned, weights: bytes) -> Batch:
    rounds, rewards = lesson.rounds, lesson.rewards
    scheduler = NumpyPolicy(weights)
    states = np.stack([policy.state_after(rounds[:i]) for i in range(len(rounds) + 1)])
    # A bound may have changed the drawn action; PPO learns from the action that was carried out.
    actions = np.array([report.actors - 1 for report in rounds], dtype=np.int64).clip(
        0, policy.actors_max - 1
    )
    logits = scheduler.outputs(states[:-1].copy()).astype(np.float64)
    top = logits.max(axis=1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    steps = len(rounds)
    ends = np.zeros((steps, 1), dtype=bool)
    ends[-1] = True
    return Batch(
        versions=np.array([scheduler.version], dtype=np.int64),
        observations=states[:-1, None],
        actions=actions[:, None],
        log_probs=log_p[np.arange(steps), actions].astype(np.float32)[:, None],
        rewards=rewards[:, None],
        terminated=ends,
        truncated=np.zeros_like(ends),
        discounted_returns=np.zeros((steps, 1)),
        last_observations=states[-1:],
        final_index=np.zeros((0, 2), dtype=np.int32),
        final_observations=np.zeros((0, states.shape[1]), dtype=np.float32),
        episode_returns=np.array([float(rewards.sum())]),
        episode_lengths=np.array([steps], dtype=np.int32),
    )
