"""What MuJoCo's robots have in common: views of the simulation's memory, its steps, and its resets."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.rl.environments.native.copy import Copy, Row, Seen

# What `np.clip` comes to: on arrays this small, getting there takes several times as long.
clip: Any = getattr(np._core.umath, "clip", np.clip)  # type: ignore[attr-defined]


class Robot(Copy):
    """A robot whose episodes begin at its first pose with uniform noise on all positions and velocities.

    Only families that use contact forces call `mj_rnePostConstraint`: no later step reads what it computes.
    Whole arrays are written by `array[...] = `, and results of functions by position: both take half the time of
    `array[:] = ` and `out=`, and are most of what a step takes beside the physics.
    """

    reads_actions = True
    releases = True

    def __init__(self, base: Any, first: Any) -> None:
        import mujoco

        self._mj_step, self._mj_forward = mujoco.mj_step, mujoco.mj_forward
        self._mj_reset, self._mj_contact_forces = mujoco.mj_resetData, mujoco.mj_rnePostConstraint
        self._base = base
        # All copies were made from the same file; one model for all stays in the caches.
        self._model, self._data, self._frames = first.model, base.data, base.frame_skip
        # Views of the simulation's own memory, which stays where it is as long as the environment lives.
        self._ctrl, self._qpos, self._qvel = base.data.ctrl, base.data.qpos, base.data.qvel
        # Single numbers are read through these, which takes half as long as out of an array.
        self._position, self._velocity = memoryview(self._qpos), memoryview(self._qvel)
        self._positions, self._velocities = base.model.nq, base.model.nv
        self._step_s: float = base.dt
        self._older = type(base).__module__.endswith("_v4")
        self._first_qpos, self._first_qvel = base.init_qpos, base.init_qvel
        self._noise_scale = self.noise_scale()

    def adopt(self) -> None:
        self._rng = self._base.np_random

    def restart(self, seen: Seen) -> None:
        self._mj_reset(self._model, self._data)
        self._place(self._rng)
        self._mj_forward(self._model, self._data)
        self.observe(seen)

    def _put_together(self, *views: Row) -> None:
        """Let `observe` show these views of the simulation, one after the other."""
        ends = np.cumsum([len(view) for view in views]).tolist()
        self._shown = np.empty(ends[-1])
        self._parts = [
            (self._shown[end - len(view) : end], view) for end, view in zip(ends, views, strict=True)
        ]

    def observe(self, seen: Seen) -> None:
        """Write the observation of the current state into `seen`."""
        for part, view in self._parts:
            part[...] = view
        seen[...] = self._shown

    def _place(self, rng: np.random.Generator) -> None:
        """Draw the first pose and speed of an episode."""
        scale = self._noise_scale
        # One draw gives the numbers that two would give one after the other.
        noise = rng.uniform(-scale, scale, self._positions + self._velocities)
        np.add(self._first_qpos, noise[: self._positions], self._qpos)
        np.add(self._first_qvel, noise[self._positions :], self._qvel)

    def _place_with_normal_speed(self, rng: np.random.Generator) -> None:
        scale = self._noise_scale
        np.add(self._first_qpos, rng.uniform(-scale, scale, self._positions), self._qpos)
        np.add(self._first_qvel, scale * rng.standard_normal(self._velocities), self._qvel)

    def noise_scale(self) -> float:
        """Return how far first positions and velocities may be from the first pose."""
        # Families with a `_place` of their own may have none.
        scale: float = getattr(self._base, "_reset_noise_scale", 0.0)
        return scale


def control_cost(weight: float, actions: Any) -> Any:
    """Return the weighted sums of squares in the precision of the actions, as Gymnasium does."""
    return weight * np.sum(np.square(actions), axis=-1)


def lengths(vectors: Row) -> Row:
    """Return the norms of the last axis by the same product that `numpy.linalg.norm` takes of one vector."""
    norms: Row = np.sqrt(np.vecdot(vectors, vectors))
    return norms
