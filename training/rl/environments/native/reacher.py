"""Reacher: pays for how near its fingertip is to a target, less for its actions."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot, lengths


class Reacher(Robot):
    """Records the way from the target to the fingertip. The older version pays for where it was before the step."""

    width = 3

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._tip, self._target = base.data.body("fingertip").xpos, base.data.body("target").xpos
        self._angles, self._rest, self._speeds = self._qpos[:2], self._qpos[2:], self._qvel[:2]
        # What is seen is put together here, in parts that are taken once. The newer version does not see heights.
        end = 4 + len(self._rest)
        put = np.empty(end + 5)
        self._cosines, self._sines, self._put_rest = put[:2], put[2:4], put[4:end]
        self._put_speeds, self._way = put[end : end + 2], put[end + 2 :]
        self._shown = put if self._older else put[:-1]
        self._distance_weight = 1.0 if self._older else base._reward_dist_weight
        self._control_weight = 1.0 if self._older else base._reward_control_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        if self._older:
            np.subtract(self._tip, self._target, record)
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        self.observe(seen)
        if not self._older:
            record[...] = self._way
        return False

    def observe(self, seen: Seen) -> None:
        np.cos(self._angles, self._cosines)
        np.sin(self._angles, self._sines)
        self._put_rest[...] = self._rest
        self._put_speeds[...] = self._speeds
        np.subtract(self._tip, self._target, self._way)
        seen[...] = self._shown

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        distance = -lengths(records) * self._distance_weight
        effort = -np.sum(np.square(actions), axis=-1) * self._control_weight
        rewards: Row = distance + effort
        return rewards

    def _place(self, rng: np.random.Generator) -> None:
        np.add(rng.uniform(-0.1, 0.1, self._positions), self._first_qpos, self._qpos)
        while True:
            goal = rng.uniform(-0.2, 0.2, 2)
            if sqrt(goal.dot(goal)) < 0.2:
                break
        self._qpos[-2:] = goal
        np.add(self._first_qvel, rng.uniform(-0.005, 0.005, self._velocities), self._qvel)
        self._qvel[-2:] = 0
