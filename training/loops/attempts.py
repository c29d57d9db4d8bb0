"""How often a call may be tried, by its kind and the job's spec."""

from __future__ import annotations

from training.calls import KINDS
from training.calls.update import UPDATE_ATTEMPTS
from training.tasks.training import Training


def attempts_of(spec: Training, kind: str) -> int:
    """Return how often a call of this kind may be tried in a run of this spec."""
    if spec.loop.kind == "pipelined" and KINDS[kind].role != "judging":
        # This loop waits for sampling and learning together.
        return max(spec.attempts, UPDATE_ATTEMPTS)
    return KINDS[kind].attempts or spec.attempts
