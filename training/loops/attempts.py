"""How often a call may be tried and where it runs, by its kind and the job's spec."""

from __future__ import annotations

from typing import Literal

from training.calls import KINDS
from training.calls.update import UPDATE_ATTEMPTS
from training.loops.staleness_aware import StalenessAware
from training.tasks.training import Training


def attempts_of(spec: Training, kind: str) -> int:
    """Return how often a call of this kind may be tried in a run of this spec."""
    if spec.loop.kind == "pipelined" and KINDS[kind].role != "judging":
        # This loop waits for sampling and learning together.
        return max(spec.attempts, UPDATE_ATTEMPTS)
    if isinstance(spec.loop, StalenessAware) and spec.loop.order == "arrival" and kind == "gradient":
        # Its slice is sent again instead, with the newest version.
        return 1
    return KINDS[kind].attempts or spec.attempts


def place_of(spec: Training, kind: str) -> Literal["actor", "learner"]:
    """Return where calls of this kind run in a run of this spec."""
    loop = spec.loop
    return loop.where if isinstance(loop, StalenessAware) and kind == "gradient" else KINDS[kind].where
