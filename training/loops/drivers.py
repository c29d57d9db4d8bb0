"""A run from its beginning to its end, by the driver that its loop needs."""

from __future__ import annotations

from collections.abc import Iterator

from training.data.shard import BadShard
from training.data.store import MissingData
from training.engine.messages import Event
from training.engine.stopping import RunEnd
from training.loops.driver import Driver
from training.loops.gradient_driver import GradientDriver
from training.loops.run import TrainingRun

DRIVERS: dict[str, type[Driver]] = {"staleness_aware": GradientDriver}
"""Drivers of loops with orders of their own; all others have the plain one."""


def drive(run: TrainingRun) -> Iterator[Event]:
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
