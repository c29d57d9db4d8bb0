"""A job's first calls, as prices see them."""

from __future__ import annotations

from typing import Any

from training.calls import KINDS
from training.deadlines import Deadlines
from training.messages import Call
from training.spec import TrainingSpec
from training.tasks.reinforcement import CALLS_AT_MOST


def evaluations(training: TrainingSpec) -> int:
    """Return the most calls of an evaluation."""
    return min(training.evaluation.episodes, CALLS_AT_MOST)


def first_call(training: TrainingSpec, kind: str) -> Call:
    """Return a call of this kind with all that prices depend on: its place, its memory, and the deadline that it has
    before any call is measured.
    """
    share = -(-training.evaluation.episodes // evaluations(training))
    episodes = share if KINDS[kind].grows_with_episodes else 1
    seen: dict[str, Any] = {
        "where": KINDS[kind].where,
        "memory_mb": training.rollout.memory_mb,
        "deadline_s": Deadlines(training.rollout.deadline_s).for_kind(kind, episodes),
    }
    return Call.model_construct(**seen)
