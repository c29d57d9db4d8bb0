"""Gymnasium's planar robots (Hopper, Walker2d, HalfCheetah) stepped with less Python around the same physics.

A step of theirs spends a third of its time on copies, properties and an `info` that training never reads. Here the same
numbers come from the same `mj_step` in the same order of operations, so trajectories are equal bit for bit
(tests/training/test_planar_robots.py compares them with Gymnasium's own).
"""

from __future__ import annotations

from math import inf
from typing import Any

import gymnasium
import numpy as np

_FASTEST = 10.0
_ROBOTS = {
    f"gymnasium.envs.mujoco.{name}_{version}"
    for name in ("hopper", "walker2d", "half_cheetah")
    for version in ("v4", "v5")
}


def is_planar_robot(base: Any) -> bool:
    """Only Gymnasium's own classes: a subclass may pay or see something else."""
    return type(base).__module__ in _ROBOTS


class PlanarRobot(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The innermost wrapper of a planar robot: `step` is its own, all else the robot's. `info` stays empty."""

    def __init__(self, robot: Any) -> None:
        import mujoco

        super().__init__(robot)
        base: Any = robot.unwrapped
        self._mj_step = mujoco.mj_step
        self._model, self._data, self._substeps = base.model, base.data, base.frame_skip
        # Views of the simulation's own memory, which stays where it is as long as the robot lives.
        self._ctrl, self._qpos, self._qvel = base.data.ctrl, base.data.qpos, base.data.qvel
        self._step_s = base.dt
        self._hidden = 1 if base._exclude_current_positions_from_observation else 0
        self._seen_positions = base.model.nq - self._hidden
        self._seen = self._seen_positions + base.model.nv
        self._forward_weight = base._forward_reward_weight
        self._cost_weight = base._ctrl_cost_weight
        self._runs_on = not hasattr(base, "_healthy_z_range")
        if not self._runs_on:
            self._healthy_reward = base._healthy_reward
            self._ends = base._terminate_when_unhealthy
            # The older version pays for health whenever bad health would end the episode, at its last step too.
            self._always_paid = self._ends and type(base).__module__.endswith("_v4")
            self._low_z, self._high_z = base._healthy_z_range
            self._low_angle, self._high_angle = base._healthy_angle_range
            self._low: float
            self._high: float
            self._low, self._high = getattr(base, "_healthy_state_range", (-inf, inf))
            self._looks_at_all = hasattr(base, "_healthy_state_range")

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        before = float(self._qpos[0])
        self._ctrl[:] = action
        self._mj_step(self._model, self._data, nstep=self._substeps)
        x_velocity = (float(self._qpos[0]) - before) / self._step_s
        reward = self._forward_weight * x_velocity
        # In the action's own precision, as Gymnasium has it.
        cost = float(self._cost_weight * np.add.reduce(np.square(action)))
        if self._runs_on:
            return self._observed(clipped=False), reward - cost, False, False, {}
        healthy = self._healthy()
        paid = self._healthy_reward if healthy or self._always_paid else 0.0
        return self._observed(clipped=True), reward + paid - cost, self._ends and not healthy, False, {}

    def _observed(self, *, clipped: bool) -> np.ndarray:
        seen = np.empty(self._seen)
        seen[: self._seen_positions] = self._qpos[self._hidden :]
        velocities = seen[self._seen_positions :]
        velocities[:] = self._qvel
        if clipped:
            np.minimum(np.maximum(velocities, -_FASTEST, out=velocities), _FASTEST, out=velocities)
        return seen

    def _healthy(self) -> bool:
        _, z, angle, *joints = self._qpos.tolist()
        if not (self._low_z < z < self._high_z and self._low_angle < angle < self._high_angle):
            return False
        if not self._looks_at_all:
            return True
        low, high = self._low, self._high
        return all(low < one < high for one in (angle, *joints, *self._qvel.tolist()))
