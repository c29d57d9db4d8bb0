"""The engine: a generator that takes a spec and a platform, and yields events."""

from __future__ import annotations

from collections.abc import Iterator

from training.data.shard import BadShard
from training.data.store import MissingData
from training.engine.checkpoints import Progress
from training.engine.messages import Event, Started
from training.engine.ports import CheckpointStore, ControlSource, Platform
from training.engine.stopping import RunEnd
from training.loops.driver import Driver
from training.loops.gradient_driver import GradientDriver
from training.loops.run import TrainingRun
from training.tasks.kinds import task_of
from training.tasks.training import Training

DRIVERS: dict[str, type[Driver]] = {"staleness_aware": GradientDriver}
"""Drivers of loops with orders of their own; all others have the plain one."""


def train(
    spec: Training,
    *,
    platform: Platform,
    checkpoints: CheckpointStore,
    control: ControlSource,
    resume: bytes | None = None,
    begin_with: bytes | None = None,
    call_prefix: str = "",
) -> Iterator[Event]:
    """Train until the stop rule, a user or the budget ends the run. The last event is always `Stopped`.

    `resume` is a checkpoint's content; the run continues from it as if it had never stopped. `begin_with` is a
    checkpoint of another run: without `resume`, this run begins with its weights. `call_prefix` goes before every
    call's id, so that a ledger with several runs of one job sees no id twice. The caller closes the platform.
    """
    task = task_of(spec)
    if resume is not None:
        progress = Progress.resume(resume, spec)
    elif begin_with is not None:
        progress = task.fork(Progress.decode(begin_with, spec))
    else:
        progress = task.begin()
    yield Started(
        resumed_from_round=progress.round_no if resume is not None else None,
        stepping=task.stepping(),
        notes=task.notes(),
    )
    yield from _drive(TrainingRun(task, platform, checkpoints, control, progress, call_prefix))


def _drive(run: TrainingRun) -> Iterator[Event]:
    """Run a loop to the end of its run. Data that is not there any more, or was changed, ends it too."""
    run_end = run.over()
    after: tuple[str, ...] = ()
    if run_end is None:
        driver = DRIVERS.get(run.spec.loop.kind, Driver)(run)
        try:
            run_end = yield from driver.go()
            yield from driver.stop(run_end)
        except (MissingData, BadShard) as error:
            run_end = RunEnd("failing", f"the data cannot be read: {error}")
            yield from run.flight.drain(run_end)
        after = driver.loop.after
    yield from run.end(run_end, after)
