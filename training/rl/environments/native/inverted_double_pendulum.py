"""InvertedDoublePendulum: paid for keeping its tip up, less for how far and how fast it moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.robot import Robot, clip

# As arrays, which a function of arrays takes faster than numbers.
_LOW, _HIGH = np.array(-10.0), np.array(10.0)


class InvertedDoublePendulum(Robot):
    """Records whether the episode ended, the tip's place, and all speeds."""

    width = 7
    reads_actions = False

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._tip = base.data.site_xpos[0]
        self._height = memoryview(self._tip)[2:]
        self._cart, self._angles = self._qpos[:1], self._qpos[1:]
        # The older version pays for the last step too.
        self._bonuses = (10, 10) if self._older else (base._healthy_reward * 1, base._healthy_reward * 0)
        self._constraint = base.data.qfrc_constraint[: None if self._older else 1]
        # What is seen and what is recorded are put together in two arrays, in parts that are taken once.
        shown = self._shown = np.empty(5 + self._velocities + len(self._constraint))
        self._place_seen, self._sines, self._cosines, self._clipped = (
            shown[:1],
            shown[1:3],
            shown[3:5],
            shown[5:],
        )
        state = np.zeros(4 + len(self._clipped))
        self._tip_found, self._unclipped, self._found = state[1:4], state[4:], state[:7]
        self._speeds, self._pushes = state[4:7], state[7:]

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        self.observe(seen)
        self._tip_found[...] = self._tip
        over: bool = self._height[0] <= 1
        self._found[0] = over
        record[...] = self._found
        return over

    def observe(self, seen: Seen) -> None:
        self._place_seen[...] = self._cart
        np.sin(self._angles, self._sines)
        np.cos(self._angles, self._cosines)
        self._speeds[...] = self._qvel
        self._pushes[...] = self._constraint
        clip(self._unclipped, _LOW, _HIGH, self._clipped)
        seen[...] = self._shown

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        # Powers of single numbers, as Gymnasium takes them: arrays would be squared by a product, which may differ.
        alive, last = self._bonuses
        rewards = [
            (last if over else alive) - (0.01 * x**2 + (y - 2) ** 2) - (1e-3 * v1**2 + 5e-3 * v2**2)
            for step in records.tolist()
            for over, x, _, y, _, v1, v2 in step
        ]
        return np.array(rewards, dtype=np.float64).reshape(records.shape[:2])

    def noise_scale(self) -> float:
        return 0.1 if self._older else super().noise_scale()

    def _place(self, rng: np.random.Generator) -> None:
        self._place_with_normal_speed(rng)
