"""Pendulum, in plain numbers; what its torque does is computed in the torque's single precision."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from training.rl.environments.native.classic import Classic
from training.rl.environments.native.copy import Row, Seen


class Pendulum(Classic):
    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._step_s, self._max_speed = base.dt, base.max_speed
        self._pull = 3 * base.g / (2 * base.l)
        self._lever = 3.0 / (base.m * base.l**2)
        self._sine = 0.0

    def adopt(self) -> None:
        super().adopt()
        self._sine = float(np.sin(self._state[0]))

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        angle, speed = self._state
        torque = action[0]
        lean = ((angle + pi) % (2 * pi)) - pi
        record[0] = -(lean**2 + 0.1 * speed**2 + float(0.001 * (torque**2)))
        speed = speed + (self._pull * self._sine + float(self._lever * torque)) * self._step_s
        speed = min(max(speed, -self._max_speed), self._max_speed)
        angle = angle + speed * self._step_s
        self._state = (angle, speed)
        self._moved = True
        # NumPy's, as Gymnasium takes them: those of `math` may differ in the last bit.
        self._sine = float(np.sin(angle))
        seen[0], seen[1], seen[2] = np.cos(angle), self._sine, speed
        return False
