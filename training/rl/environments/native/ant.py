"""Ant: paid for its body's way along x and for health, at the cost of actions and contact forces."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot, clip, control_cost


class Ant(Robot):
    """Records its body's x before and after, whether health is paid for, and the clipped contact forces."""

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._shown = self._qpos[2:] if base._exclude_current_positions_from_observation else self._qpos
        self._first_velocity = len(self._shown)
        self._first_contact = self._first_velocity + self._velocities
        body = base.data.body("torso" if self._older else base._main_body)
        self._body_position = body.xpos
        self._forces = base.data.cfrc_ext.reshape(-1)
        self._low_force, self._high_force = map(np.float64, base._contact_force_range)
        # The older version looks at contacts only on request, and then sees those of the world too.
        self._feels = base._use_contact_forces if self._older else True
        self._sees_forces = base._use_contact_forces if self._older else base._include_cfrc_ext_in_observation
        self._unseen = 0 if self._older else 6
        self.width = 3 + len(self._forces) if self._feels else 3
        self._healthy_reward = base._healthy_reward
        self._ends = base._terminate_when_unhealthy
        self._always_paid = self._older and self._ends
        self._low_z, self._high_z = base._healthy_z_range
        self._cost_weight = base._ctrl_cost_weight
        self._contact_weight = base._contact_cost_weight
        self._forward_weight = 1.0 if self._older else base._forward_reward_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        record[0] = self._body_position.item(0)
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        record[1] = self._body_position.item(0)
        if self._feels:
            self._mj_contact_forces(self._model, self._data)
            forces = clip(self._forces, self._low_force, self._high_force, record[3:])
            if self._sees_forces:
                seen[self._first_contact :] = forces[self._unseen :]
        self._observe_motion(seen)
        healthy = self._healthy()
        record[2] = healthy or self._always_paid
        return bool(self._ends and not healthy)

    def observe(self, seen: Seen) -> None:
        self._observe_motion(seen)
        if self._sees_forces:
            seen[self._first_contact :] = clip(self._forces, self._low_force, self._high_force)[
                self._unseen :
            ]

    def _observe_motion(self, seen: Seen) -> None:
        seen[: self._first_velocity] = self._shown
        seen[self._first_velocity : self._first_contact] = self._qvel

    def _healthy(self) -> bool:
        if not self._low_z <= self._position[2] <= self._high_z:
            return False
        # A finite sum of squares has finite parts; one that is not may have overflowed.
        return bool(
            self._qpos.dot(self._qpos) + self._qvel.dot(self._qvel) < inf
            or (np.isfinite(self._qpos).all() and np.isfinite(self._qvel).all())
        )

    def _place(self, rng: np.random.Generator) -> None:
        self._place_with_normal_speed(rng)

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        forward = ((records[..., 1] - records[..., 0]) / self._step_s) * self._forward_weight
        gained = forward + records[..., 2] * self._healthy_reward
        cost = control_cost(self._cost_weight, actions)
        if self._feels:
            cost = cost + self._contact_weight * np.sum(np.square(records[..., 3:]), axis=-1)
        rewards: Row = gained - cost
        return rewards
