"""Pusher: pays for how near an object is to its goal and the arm to the object, less for its actions."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot, lengths


class Pusher(Robot):
    """Records where the arm, the object and the goal are."""

    width = 9

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        bodies = [base.data.body(name).xpos for name in ("tips_arm", "object", "goal")]
        self._put_together(self._qpos[:7], self._qvel[:7], *bodies)
        self._places = self._shown[14:]
        self._near_weight = base._reward_near_weight
        self._distance_weight = base._reward_dist_weight
        self._control_weight = base._reward_control_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        self.observe(seen)
        record[...] = self._places
        return False

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        arm, moved, goal = records[..., :3], records[..., 3:6], records[..., 6:]
        near = -lengths(moved - arm) * self._near_weight
        distance = -lengths(moved - goal) * self._distance_weight
        effort = -np.sum(np.square(actions), axis=-1) * self._control_weight
        rewards: Row = distance + effort + near
        return rewards

    def _place(self, rng: np.random.Generator) -> None:
        while True:
            place = np.concatenate([rng.uniform(-0.3, 0, 1), rng.uniform(-0.2, 0.2, 1)])
            if sqrt(place.dot(place)) > 0.17:
                break
        self._qpos[...] = self._first_qpos
        self._qpos[-4:-2] = place
        self._qpos[-2:] = 0
        np.add(self._first_qvel, rng.uniform(-0.005, 0.005, self._velocities), self._qvel)
        self._qvel[-4:] = 0
