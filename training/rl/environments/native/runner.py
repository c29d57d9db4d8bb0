"""Robots that are paid for moving along x: what Hopper, Walker2d, HalfCheetah and Swimmer have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot, clip, control_cost

# As arrays, which a function of arrays takes faster than numbers.
_SLOWEST, _FASTEST = np.array(-10.0), np.array(10.0)


class Runner(Robot):
    """Sees its positions but the first `hidden`, and its velocities. Pays weight · velocity − cost of its actions."""

    width = 2
    hidden = 1

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        hidden = self.hidden if base._exclude_current_positions_from_observation else 0
        self._put_together(self._qpos[hidden:], self._qvel)
        (self._seen_positions, self._seen_from), (self._seen_velocities, _) = self._parts
        self._forward_weight = base._forward_reward_weight
        self._cost_weight = base._ctrl_cost_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        record[0] = self._position[0]
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        record[1] = self._position[0]
        self.observe(seen)
        return False

    def observe(self, seen: Seen) -> None:
        self._seen_positions[...] = self._seen_from
        self._seen_velocities[...] = self._qvel
        seen[...] = self._shown

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
        self._seen_positions[...] = self._seen_from
        clip(self._qvel, _SLOWEST, _FASTEST, self._seen_velocities)
        seen[...] = self._shown

    def healthy(self) -> bool:
        position = self._position
        return bool(
            self._low_z < position[1] < self._high_z and self._low_angle < position[2] < self._high_angle
        )

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        gained = self._forward(records) + records[..., 2] * self._healthy_reward
        rewards: Row = gained - control_cost(self._cost_weight, actions)
        return rewards
