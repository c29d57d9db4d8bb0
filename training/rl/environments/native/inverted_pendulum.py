"""InvertedPendulum: paid for each step until the pole leans."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot


class InvertedPendulum(Robot):
    width = 1
    reads_actions = False

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        position, velocity = self._position, self._velocity
        x, angle, x_speed, angle_speed = position[0], position[1], velocity[0], velocity[1]
        seen[0], seen[1], seen[2], seen[3] = x, angle, x_speed, angle_speed
        # A finite sum has finite parts; one that is not may have overflowed.
        finite = isfinite(x + angle + x_speed + angle_speed) or all(
            map(isfinite, (x, angle, x_speed, angle_speed))
        )
        over = not finite or abs(angle) > 0.2
        # The older version pays for the last step too.
        record[0] = self._older or not over
        return over

    def observe(self, seen: Seen) -> None:
        seen[: self._positions] = self._qpos
        seen[self._positions :] = self._qvel

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        return records[..., 0].copy()

    def noise_scale(self) -> float:
        return 0.01 if self._older else super().noise_scale()
