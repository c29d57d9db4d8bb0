"""A job's first calls, as prices see them."""

from __future__ import annotations

from typing import Any

from training.calls import KINDS
from training.engine.deadlines import Deadlines
from training.engine.messages import Call
from training.loops.attempts import place_of
from training.tasks.kinds import task_of
from training.tasks.training import Training


def first_call(training: Training, kind: str) -> Call:
    """Return a call of this kind with all that prices depend on: its place, its memory, and the deadline that it has
    before any call is measured.
    """
    _, share = task_of(training).most_judgings()
    trials = share if KINDS[kind].grows_with_trials else 1
    seen: dict[str, Any] = {
        "where": place_of(training, kind),
        "memory_mb": training.memory_mb,
        "deadline_s": Deadlines(training.longest_call_s).for_kind(kind, trials),
    }
    return Call.model_construct(**seen)
