"""Robots that are paid for moving along x: what Hopper, Walker2d, HalfCheetah and Swimmer have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.environments.native.copy import Row, Seen
from training.environments.native.robot import Robot, clip, control_cost

# As arrays, which a function of arrays takes faster than numbers.
_SLOWEST, _FASTEST = np.array(-10, dtype=np.float32), np.array(10, dtype=np.float32)


class Runner(Robot):
    """Sees its positions but the first `hidden`, and its velocities. Pays weight · velocity − cost of its actions."""

    width = 2
    hidden = 1

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._shown = (
            self._qpos[self.hidden :] if base._exclude_current_positions_from_observation else self._qpos
        )
        self._first_velocity = len(self._shown)
        self._forward_weight = base._forward_reward_weight
        self._cost_weight = base._ctrl_cost_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        record[0] = self._qpos.item(0)
        self._ctrl[:] = action
        self._mj_step(self._model, self._data, self._frames)
        record[1] = self._qpos.item(0)
        self.observe(seen)
        return False

    def observe(self, seen: Seen) -> None:
        seen[: self._first_velocity] = self._shown
        seen[self._first_velocity :] = self._qvel

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        rewards: Row = self._forward(records) - control_cost(self._cost_weight, actions)
        return rewards

    def _forward(self, records: Row) -> Row:
        forward: Row = self._forward_weight * ((records[..., 1] - records[..., 0]) / self._step_s)
        return forward


class Balancer(Runner):
    """A runner that is paid for being healthy, ends when it is not, and sees its velocities clipped."""

    width = 3

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._healthy_reward = base._healthy_reward
        self._ends = base._terminate_when_unhealthy
        # The older version pays for health whenever bad health would end the episode, at its last step too.
        self._always_paid = self._older and self._ends
        self._low_z, self._high_z = base._healthy_z_range
        self._low_angle, self._high_angle = base._healthy_angle_range

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        super().step(action, record, seen)
        healthy = self.healthy()
        record[2] = healthy or self._always_paid
        return bool(self._ends and not healthy)

    def observe(self, seen: Seen) -> None:
        seen[: self._first_velocity] = self._shown
        velocities = seen[self._first_velocity :]
        # Rounded, then clipped: the same as the other way round, as the limits are whole numbers.
        velocities[:] = self._qvel
        clip(velocities, _SLOWEST, _FASTEST, out=velocities)

    def healthy(self) -> bool:
        qpos = self._qpos
        return bool(
            self._low_z < qpos.item(1) < self._high_z and self._low_angle < qpos.item(2) < self._high_angle
        )

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        gained = self._forward(records) + records[..., 2] * self._healthy_reward
        rewards: Row = gained - control_cost(self._cost_weight, actions)
        return rewards
