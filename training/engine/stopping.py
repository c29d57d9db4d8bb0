"""Decides when a run is over and why: by its stop rule, by a person's wish, or by how a call ended. Pure functions.

A loop in which nothing works any more ends its run itself: it raises NothingWorks (`training/loops/state.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.engine.checkpoints import Progress
from training.engine.messages import FAULTS_THAT_END_A_RUN, Outcome, StopCode
from training.engine.ports import Desired
from training.tasks.score import USUAL, Score
from training.tasks.training import StopLimits

HELD_EVALUATIONS = 3


@dataclass(frozen=True)
class RunEnd:
    """Why a run stops: by its rule, because a person wants it, because the money is gone or because nothing works."""

    code: StopCode
    reason: str


def verdict(
    rule: StopLimits,
    progress: Progress,
    score: Score = USUAL.score,
    progress_unit: str = "steps",
    round_name: str = "round",
) -> RunEnd | None:
    """Return why the run is over now, or None. A target counts before a limit that was reached in the same round."""
    scores, target, limit = progress.evaluation_means, rule.target_score, rule.progress_limit
    if target is not None and _held(scores, target, score):
        return RunEnd(
            "target",
            f"the evaluation {score.name} stayed at {score.bound(target)} for {HELD_EVALUATIONS} evaluations",
        )
    if limit is not None and progress.total_progress >= limit:
        return RunEnd("steps", f"reached {limit:,} {progress_unit}")
    if rule.rounds is not None and progress.round_no >= rule.rounds:
        return RunEnd("rounds", f"reached {rule.rounds:,} {round_name}s")
    if rule.minutes is not None and progress.elapsed_s >= rule.minutes * 60:
        return RunEnd("minutes", f"{rule.minutes:g} minutes of platform time have passed")
    patience = rule.no_progress_evaluations
    if patience is not None and _evaluations_since_best(scores, score) >= patience:
        best = score.best(scores)
        return RunEnd("no_progress", f"{patience} evaluations in a row brought no new best of {best:.1f}")
    return None


_WISHES: Mapping[Desired, RunEnd] = {
    "cancelled": RunEnd("cancelled", "stopped by hand"),
    "paused": RunEnd("paused", "paused"),
}


def wished_end(desired: Desired) -> RunEnd | None:
    """Return the end that a person wants, or None."""
    return _WISHES.get(desired)


def end_by_outcome(outcome: Outcome) -> RunEnd | None:
    """Return why a run is over once a call has ended like this, or None: the budget refused it or cut it off, or no
    later call can succeed until a person acts.
    """
    if outcome.status == "refused" or outcome.reason_code == "budget":
        return RunEnd("budget", outcome.reason)
    if outcome.status == "failed" and outcome.reason_code in FAULTS_THAT_END_A_RUN:
        return RunEnd("failing", outcome.reason)
    return None


def fraction_done(rule: StopLimits, progress: Progress) -> float:
    """Return how much of the run is over, for schedules that decay: by progress or rounds, whichever is further."""
    parts = [0.0]
    if rule.progress_limit is not None:
        parts.append(progress.total_progress / rule.progress_limit)
    if rule.rounds is not None:
        parts.append(progress.round_no / rule.rounds)
    return min(1.0, max(parts))


def _held(scores: Sequence[float], target: float, score: Score) -> bool:
    last = scores[-HELD_EVALUATIONS:]
    return len(last) == HELD_EVALUATIONS and all(score.reaches(value, target) for value in last)


def _evaluations_since_best(scores: Sequence[float], score: Score) -> int:
    if not scores:
        return 0
    return len(scores) - 1 - scores.index(score.best(scores))
