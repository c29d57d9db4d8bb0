"""MountainCar, in plain numbers."""

from __future__ import annotations

from math import cos
from typing import Any

from training.rl.environments.native.classic import Classic
from training.rl.environments.native.copy import Row, Seen


class MountainCar(Classic):
    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._force, self._gravity, self._max_speed = base.force, base.gravity, base.max_speed
        self._low, self._high = base.min_position, base.max_position
        self._goal, self._goal_speed = base.goal_position, base.goal_velocity

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        position, velocity = self._state
        velocity += (action - 1) * self._force + cos(3 * position) * (-self._gravity)
        velocity = min(max(velocity, -self._max_speed), self._max_speed)
        position = min(max(position + velocity, self._low), self._high)
        if position == self._low and velocity < 0:
            velocity = 0.0
        self._state = (position, velocity)
        self._moved = True
        seen[0], seen[1] = position, velocity
        record[0] = -1.0
        return bool(position >= self._goal and velocity >= self._goal_speed)

    def hand_over(self) -> None:
        if self._moved:
            self._base.state = self._state
