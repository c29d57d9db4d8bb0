"""What MuJoCo's robots have in common: views of the simulation's memory, its steps, and its resets."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.environments.native.copy import Copy, Row, Seen

# What `np.clip` comes to: on arrays this small, getting there takes several times as long.
clip: Any = getattr(np._core.umath, "clip", np.clip)  # type: ignore[attr-defined]


class Robot(Copy):
    """A robot whose episodes begin at its first pose with uniform noise on all positions and velocities.

    Only families that use contact forces call `mj_rnePostConstraint`: no later step reads what it computes.
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
        self._positions, self._velocities = base.model.nq, base.model.nv
        self._step_s: float = base.dt
        self._older = type(base).__module__.endswith("_v4")

    def restart(self, seen: Seen) -> None:
        self._mj_reset(self._model, self._data)
        self._place(self._base.np_random)
        self._mj_forward(self._model, self._data)
        self.observe(seen)

    def observe(self, seen: Seen) -> None:
        """Write the observation of the current state into `seen`."""
        raise NotImplementedError

    def _place(self, rng: np.random.Generator) -> None:
        """Draw the first pose and speed of an episode."""
        scale = self._noise_scale()
        # One draw gives the numbers that two would give one after the other.
        noise = rng.uniform(-scale, scale, self._positions + self._velocities)
        np.add(self._base.init_qpos, noise[: self._positions], out=self._qpos)
        np.add(self._base.init_qvel, noise[self._positions :], out=self._qvel)

    def _place_with_normal_speed(self, rng: np.random.Generator) -> None:
        scale = self._noise_scale()
        np.add(self._base.init_qpos, rng.uniform(-scale, scale, self._positions), out=self._qpos)
        np.add(self._base.init_qvel, scale * rng.standard_normal(self._velocities), out=self._qvel)

    def _noise_scale(self) -> float:
        scale: float = self._base._reset_noise_scale
        return scale


def control_cost(weight: float, actions: Any) -> Any:
    """Return the weighted sums of squares in the precision of the actions, as Gymnasium does."""
    return weight * np.sum(np.square(actions), axis=-1)


def lengths(vectors: Row) -> Row:
    """Return the norms of the last axis by the same product that `numpy.linalg.norm` takes of one vector."""
    norms: Row = np.sqrt(np.vecdot(vectors, vectors))
    return norms
