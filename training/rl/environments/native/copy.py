"""What each family implements: one copy of an environment, stepped without Gymnasium's Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float64]
Seen = npt.NDArray[np.float32]


class Copy:
    """One copy. `step` records the numbers that rewards need; `rewards` then serves many steps at once.

    `width` is how many numbers a step records. `reads_actions`: rewards depend on actions too. `releases`: a step
    spends most of its time outside Python's lock, so threads can step copies at the same time.
    """

    width: int
    reads_actions = False
    releases = False

    def __init__(self, base: Any, first: Any) -> None:
        """Copy Gymnasium's environment `base`. All copies may share the constants of the slot's `first`."""
        raise NotImplementedError

    @staticmethod
    def refusal(base: Any) -> str:
        """Return why this environment cannot be stepped natively, as the end of a sentence; empty if it can."""
        return ""

    def adopt(self) -> None:
        """Continue from the state of Gymnasium's environment after a reset or a restore."""

    def hand_over(self) -> None:
        """Bring Gymnasium's environment to this copy's state."""

    def restart(self, seen: Seen) -> None:
        """Begin an episode with the draws of Gymnasium's reset. Write the first observation into `seen`."""
        raise NotImplementedError

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        """Take `action` and write the observation into `seen`. Return whether the episode terminated."""
        raise NotImplementedError

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        """Return the rewards [step, copy] of the recorded numbers [step, copy, number] and the actions."""
        raise NotImplementedError
