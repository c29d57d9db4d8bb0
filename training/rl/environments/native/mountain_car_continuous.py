"""MountainCarContinuous, in plain numbers that are rounded to single precision wherever Gymnasium's are."""

from __future__ import annotations

from math import cos
from typing import Any

import numpy as np

from training.rl.environments.native.classic import Classic
from training.rl.environments.native.copy import Row, Seen


class MountainCarContinuous(Classic):
    """After a reset the state is in double precision, so an episode's first step is Gymnasium's own."""

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        # Writing a number into this and reading it back rounds it: no quicker way was found.
        self._single = memoryview(bytearray(4)).cast("f")
        self._power, self._goal = float(np.float32(base.power)), float(np.float32(base.goal_position))
        self._low, self._high = float(np.float32(base.min_position)), float(np.float32(base.max_position))
        self._max_speed, self._single_max_speed = base.max_speed, float(np.float32(base.max_speed))
        self._goal_speed, self._single_goal_speed = base.goal_velocity, float(np.float32(base.goal_velocity))

    @staticmethod
    def refusal(base: Any) -> str:
        plain = type(base.goal_velocity) in (int, float)
        return "" if plain else f"its goal_velocity is a {type(base.goal_velocity).__name__}"

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        if not self._moved and self._base.state.dtype != np.float32:
            seen[:], record[0], arrived, _, _ = self._base.step(action)
            self.adopt()
            return bool(arrived)
        position, velocity = self._state
        single, throttle = self._single, action.item(0)
        single[0] = 3 * position
        single[0] = 0.0025 * cos(single[0])
        pull = single[0]
        single[0] = throttle * self._power
        single[0] -= pull
        single[0] += velocity
        velocity = single[0]
        # Limits are kept in double precision until they are added to a position.
        fast_enough = velocity >= self._single_goal_speed
        if velocity > self._single_max_speed:
            velocity, fast_enough = self._single_max_speed, self._max_speed >= self._goal_speed
        elif velocity < -self._single_max_speed:
            velocity, fast_enough = -self._single_max_speed, -self._max_speed >= self._goal_speed
        single[0] = position + velocity
        position = single[0]
        if position > self._high:
            position = self._high
        elif position <= self._low:
            position = self._low
            if velocity < 0:
                velocity, fast_enough = 0.0, self._goal_speed <= 0
        self._state = (position, velocity)
        self._moved = True
        seen[0], seen[1] = self._state
        over = bool(fast_enough and position >= self._goal)
        # The square of a number of single precision is exact.
        record[0] = (100.0 if over else 0) - throttle * throttle * 0.1
        return over

    def hand_over(self) -> None:
        if self._moved:
            self._base.state = np.array(self._state, dtype=np.float32)
