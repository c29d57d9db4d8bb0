"""The hybrid synchronous loop (Wang et al. 2019): asynchronous within an epoch, a barrier at its end.

With one function and one local step it is plain minibatch descent, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from training.loops.epochs import over_epochs
from training.loops.run import Run
from training.messages import Event


def hybrid(run: Run) -> Iterator[Event]:
    yield from over_epochs(run, together=False, barrier=True)
