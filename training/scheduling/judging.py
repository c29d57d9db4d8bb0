"""Chooses which agent of a training to use: the last one, or the one whose real episode had the highest score.

An episode's score depends on luck as much as on skill, and its decisions were sampled. So both agents play once more,
with the same seed and without sampling, and the better one is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from training.learner import LearnerState
from training.reports import RoundReport
from training.scaling.learned import Learned, as_text
from training.scheduling.episode import UsualRound, score_of
from training.scheduling.model import SchedulingSpec
from training.seeds import derive

Agent = Literal["last", "best"]


@dataclass(frozen=True)
class JudgedAgent:
    """An agent's episode without exploration."""

    rounds: Sequence[RoundReport]
    score: float


def judge(
    spec: SchedulingSpec,
    state: bytes,
    play: Callable[[Learned, int], Sequence[RoundReport]],
    *,
    recorded: Sequence[Sequence[RoundReport]],
) -> JudgedAgent:
    """Play the agent's episode with the seed that all agents of a training share, and score it as the training did."""
    weights = LearnerState.decode(state).actor_weights(spec.network)
    policy = spec.policy(as_text(weights), explore=False)
    rounds = play(policy, derive(spec.seed, "judged"))
    usual = UsualRound.of([report for run in recorded for report in run])
    return JudgedAgent(rounds, score_of(rounds, spec, usual))


def better(scores: dict[Agent, float]) -> Agent:
    """Return the last agent if both are equally good, or no other was judged."""
    return "best" if scores.get("best", float("-inf")) > scores.get("last", float("-inf")) else "last"
