"""Which agent of a training is used: the last one, or the one whose real episode had the highest score.

An episode's score is as much luck as skill, and its decisions were drawn. So both agents play once more, on the same
seed and without drawing, and the better one is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from training.functions.update import import_torch
from training.learner import LearnerState
from training.reports import RoundReport
from training.scaling.learned import Learned, as_text
from training.scheduling.episode import Usual, score_of
from training.scheduling.model import SchedulingSpec
from training.seeds import derive

Agent = Literal["last", "best"]


@dataclass(frozen=True)
class Judged:
    """An agent's episode without exploration."""

    rounds: Sequence[RoundReport]
    score: float


def judge(
    spec: SchedulingSpec,
    state: bytes,
    play: Callable[[Learned, int], Sequence[RoundReport]],
    *,
    recorded: Sequence[Sequence[RoundReport]],
) -> Judged:
    """The same seed for every agent of a training, and the same measure as its episodes were scored by."""
    import_torch()
    weights = LearnerState.decode(state).actor_weights(spec.network)
    policy = spec.policy(as_text(weights), explore=False)
    rounds = play(policy, derive(spec.seed, "judged"))
    usual = Usual.of([report for run in recorded for report in run])
    return Judged(rounds, score_of(rounds, spec, usual))


def better(scores: dict[Agent, float]) -> Agent:
    """The last agent where both are equally good, or nothing else was judged."""
    return "best" if scores.get("best", float("-inf")) > scores.get("last", float("-inf")) else "last"
