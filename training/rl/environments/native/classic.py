"""What classic control has in common: a state of a few numbers. Episodes begin by Gymnasium's own reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Copy, Row, Seen


class Classic(Copy):
    """Records its rewards. After a reset the state stays as Gymnasium made it until the first step."""

    width = 1

    def __init__(self, base: Any, first: Any) -> None:
        self._base = base
        self._state: tuple[float, ...] = ()
        self._moved = False

    def adopt(self) -> None:
        self._state = tuple(map(float, self._base.state))
        self._moved = False

    def hand_over(self) -> None:
        if self._moved:
            self._base.state = np.array(self._state)

    def restart(self, seen: Seen) -> None:
        seen[:] = self._base.reset()[0]
        self.adopt()

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        return records[..., 0].copy()
