"""Pusher: pays for how near an object is to its goal and the arm to the object, less for its actions."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from training.environments.native.copy import Row, Seen
from training.environments.native.robot import Robot, lengths


class Pusher(Robot):
    """Records the ways from the arm and from the goal to the object."""

    width = 6

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._arm, self._object, self._goal = (
            base.data.body(name).xpos for name in ("tips_arm", "object", "goal")
        )
        self._parts = (self._qpos[:7], self._qvel[:7], self._arm, self._object, self._goal)
        self._shown = np.empty(23)
        self._near_weight = base._reward_near_weight
        self._distance_weight = base._reward_dist_weight
        self._control_weight = base._reward_control_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        self._ctrl[:] = action
        self._mj_step(self._model, self._data, self._frames)
        self.observe(seen)
        np.subtract(self._object, self._arm, out=record[:3])
        np.subtract(self._object, self._goal, out=record[3:])
        return False

    def observe(self, seen: Seen) -> None:
        np.concatenate(self._parts, out=self._shown)
        seen[:] = self._shown

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        near = -lengths(records[..., :3]) * self._near_weight
        distance = -lengths(records[..., 3:]) * self._distance_weight
        effort = -np.sum(np.square(actions), axis=-1) * self._control_weight
        rewards: Row = distance + effort + near
        return rewards

    def _place(self, rng: np.random.Generator) -> None:
        while True:
            place = np.concatenate([rng.uniform(-0.3, 0, 1), rng.uniform(-0.2, 0.2, 1)])
            if sqrt(place.dot(place)) > 0.17:
                break
        self._qpos[:] = self._base.init_qpos
        self._qpos[-4:-2] = place
        self._qpos[-2:] = 0
        np.add(self._base.init_qvel, rng.uniform(-0.005, 0.005, self._velocities), out=self._qvel)
        self._qvel[-4:] = 0
