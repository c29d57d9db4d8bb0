"""Chooses which agent of a training to use: the last one, or the one whose real episode had the highest score.

An episode's score depends on luck as much as on skill, and its decisions were sampled. So both agents play once more,
with the same seed and without sampling, and the better one is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from training.engine.reports import RoundReport
from training.engine.seeds import derive
from training.rl.learner import LearnerState
from training.scaling.agent_weights import as_text
from training.scaling.plan import ScalingPolicy
from training.scheduling.decisions import AgentSpec

Agent = Literal["last", "best"]
P = TypeVar("P", bound=ScalingPolicy)


@dataclass(frozen=True)
class JudgedAgent:
    """An agent's episode without exploration."""

    rounds: Sequence[RoundReport]
    score: float


def judge(
    spec: AgentSpec[P],
    state: bytes,
    play: Callable[[P, int], Sequence[RoundReport]],
    *,
    recorded: Sequence[Sequence[RoundReport]],
) -> JudgedAgent:
    """Play the agent's episode with the seed that all agents of a training share, and score it as the training did."""
    weights = LearnerState.decode(state).actor_weights(spec.network)
    policy = spec.policy(as_text(weights), explore=False)
    rounds = play(policy, derive(spec.seed, "judged"))
    return JudgedAgent(rounds, spec.decisions(recorded).score(rounds))


def better(scores: dict[Agent, float]) -> Agent:
    """Return the last agent if both are equally good, or no other was judged."""
    return "best" if scores.get("best", float("-inf")) > scores.get("last", float("-inf")) else "last"
