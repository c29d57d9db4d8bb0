"""The bulk synchronous loop: all functions push, then the learner takes one step with the mean of their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from training.loops.epochs import over_epochs
from training.loops.run import Run
from training.messages import Event


def bulk_synchronous(run: Run) -> Iterator[Event]:
    yield from over_epochs(run, together=True, barrier=True)
