"""Hopper: healthy while upright and while no joint or velocity is out of range."""

from __future__ import annotations

from typing import Any

from training.rl.environments.native.runner import Balancer


class Hopper(Balancer):
    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._joints = self._qpos[2:]
        self._low, self._high = base._healthy_state_range
        # While the sum of squares is below this, each number is within the range.
        self._surely = min(-self._low, self._high) ** 2 if self._low < 0 < self._high else -1.0

    def healthy(self) -> bool:
        if not super().healthy():
            return False
        if self._joints.dot(self._joints) + self._qvel.dot(self._qvel) < self._surely:
            return True
        return all(self._low < value < self._high for value in (*self._joints.tolist(), *self._qvel.tolist()))
