"""Decides when a run is over, by its stop rule and its progress. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.checkpoints import Progress
from training.messages import StopCode
from training.spec import StopRule

HELD_EVALUATIONS = 3


@dataclass(frozen=True)
class Halt:
    """Why a run stops: by its rule, because a person wants it, because the money is gone or because nothing works."""

    code: StopCode
    reason: str


def verdict(rule: StopRule, progress: Progress) -> Halt | None:
    """Return why the run is over now, or None. A target counts before a limit that was reached in the same round."""
    means = progress.evaluation_means
    if rule.target_return is not None and _held(means, rule.target_return):
        return Halt(
            "target",
            f"the evaluation return stayed at {rule.target_return:g} or above for {HELD_EVALUATIONS} evaluations",
        )
    if rule.env_steps is not None and progress.total_env_steps >= rule.env_steps:
        return Halt("steps", f"{progress.total_env_steps:,} of {rule.env_steps:,} steps are done")
    if rule.rounds is not None and progress.round_no >= rule.rounds:
        return Halt("rounds", f"{progress.round_no:,} of {rule.rounds:,} rounds are done")
    if rule.minutes is not None and progress.elapsed_s >= rule.minutes * 60:
        return Halt("minutes", f"{rule.minutes:g} minutes of the platform's time are over")
    patience = rule.no_progress_evaluations
    if patience is not None and _evaluations_since_best(means) >= patience:
        return Halt("no_progress", f"{patience} evaluations in a row brought no new best of {max(means):.1f}")
    return None


def fraction_done(rule: StopRule, progress: Progress) -> float:
    """Return how much of the run is over, for schedules that decay: by steps or rounds, whichever is further."""
    parts = [0.0]
    if rule.env_steps is not None:
        parts.append(progress.total_env_steps / rule.env_steps)
    if rule.rounds is not None:
        parts.append(progress.round_no / rule.rounds)
    return min(1.0, max(parts))


def _held(means: Sequence[float], target: float) -> bool:
    last = means[-HELD_EVALUATIONS:]
    return len(last) == HELD_EVALUATIONS and min(last) >= target


def _evaluations_since_best(means: Sequence[float]) -> int:
    if not means:
        return 0
    return len(means) - 1 - means.index(max(means))
