"""The fully asynchronous loop: functions go on to the next epoch's rows without waiting; judging runs beside them."""

from __future__ import annotations

from collections.abc import Iterator

from training.loops.epochs import over_epochs
from training.loops.run import Run
from training.messages import Event


def fully_asynchronous(run: Run) -> Iterator[Event]:
    yield from over_epochs(run, together=False, barrier=False)
