"""Humanoid: paid for its centre of mass's way along x and for standing, at the cost of actions and contact forces."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot, control_cost


class FullBody(Robot):
    """What both humanoids see: positions, velocities, and per body inertia, velocity, and the forces on it."""

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        data = base.data
        skipped = 2 if getattr(base, "_exclude_current_positions_from_observation", True) else 0
        shown = [self._qpos[skipped:], self._qvel]
        # The older version sees all of these, and the world's and the root's parts too.
        for name, array, begin in (
            ("cinert", data.cinert, 1),
            ("cvel", data.cvel, 1),
            ("qfrc_actuator", data.qfrc_actuator, 6),
            ("cfrc_ext", data.cfrc_ext, 1),
        ):
            if self._older:
                shown.append(array.reshape(-1))
            elif getattr(base, f"_include_{name}_in_observation") is True:
                shown.append(array[begin:].reshape(-1))
        self._put_together(*shown)
        self._forces = data.cfrc_ext.reshape(-1)


class Humanoid(FullBody):
    """Records whether health is paid for, all bodies' centres before and after, and the contact forces."""

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._centres = base.data.xipos.reshape(-1)
        size = len(self._centres)
        self._before, self._after = slice(1, 1 + size), slice(1 + size, 1 + 2 * size)
        self._contacts = slice(1 + 2 * size, 1 + 2 * size + (0 if self._older else len(self._forces)))
        self.width = self._contacts.stop
        self._mass = np.expand_dims(base.model.body_mass, axis=1)
        self._forward_weight = base._forward_reward_weight
        self._cost_weight = base._ctrl_cost_weight
        self._healthy_reward = base._healthy_reward
        self._ends = base._terminate_when_unhealthy
        self._always_paid = self._older and self._ends
        self._low_z, self._high_z = base._healthy_z_range
        if not self._older:
            self._contact_weight = base._contact_cost_weight
            self._contact_range = base._contact_cost_range

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        record[self._before] = self._centres
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        self._mj_contact_forces(self._model, self._data)
        record[self._after] = self._centres
        if not self._older:
            record[self._contacts] = self._forces
        self.observe(seen)
        healthy = self._low_z < self._position[2] < self._high_z
        record[0] = healthy or self._always_paid
        return bool(self._ends and not healthy)

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        moved = self._centre_of_mass(records[..., self._after]) - self._centre_of_mass(
            records[..., self._before]
        )
        gained = self._forward_weight * (moved / self._step_s) + records[..., 0] * self._healthy_reward
        # The simulation keeps actions in double precision, and the cost is of what it keeps.
        cost = control_cost(self._cost_weight, actions.astype(np.float64))
        if not self._older:
            contact = self._contact_weight * np.sum(np.square(records[..., self._contacts]), axis=-1)
            cost = cost + np.clip(contact, *self._contact_range)
        rewards: Row = gained - cost
        return rewards

    def _centre_of_mass(self, centres: Row) -> Row:
        """Its x, summed over bodies in Gymnasium's order."""
        bodies = centres.reshape(*centres.shape[:-1], -1, 3)
        x: Row = (np.sum(self._mass * bodies, axis=-2) / np.sum(self._mass))[..., 0]
        return x
