"""Each loop's decisions, by the name that users choose it by."""

from __future__ import annotations

from collections.abc import Callable

from training.checkpoints import Progress
from training.loops.asynchronous import AsynchronousState
from training.loops.epochs import EpochState
from training.loops.model import LoopOfAnyKind
from training.loops.pipelined import PipelinedState
from training.loops.staleness_aware import StalenessAwareState
from training.loops.state import Job, LoopState
from training.loops.synchronous import SynchronousState
from training.scaling.plan import Plan

STATES: dict[str, type[LoopState]] = {
    "synchronous": SynchronousState,
    "pipelined": PipelinedState,
    "asynchronous": AsynchronousState,
    "staleness_aware": StalenessAwareState,
    "hybrid": EpochState,
    "bulk_synchronous": EpochState,
    "fully_asynchronous": EpochState,
}


def state_of(
    loop: LoopOfAnyKind, job: Job, progress: Progress, plan: Plan, name: Callable[[str], str]
) -> LoopState:
    """Return the beginning of a run, or of its rest after `progress`."""
    return STATES[loop.kind](loop, job, progress, plan, name)
