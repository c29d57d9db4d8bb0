"""InvertedDoublePendulum: paid for keeping its tip up, less for how far and how fast it moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.environments.native.copy import Row, Seen
from training.environments.native.robot import Robot, clip

# As arrays, which a function of arrays takes faster than numbers.
_LOW, _HIGH = np.array(-10.0), np.array(10.0)


class InvertedDoublePendulum(Robot):
    """Records the tip's x and height, both poles' speeds, and whether the episode ended."""

    width = 5
    reads_actions = False

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._tip = base.data.site_xpos[0]
        self._angles = self._qpos[1:]
        # The older version pays for the last step too.
        self._bonuses = (10, 10) if self._older else (base._healthy_reward * 1, base._healthy_reward * 0)
        self._constraint = base.data.qfrc_constraint[: None if self._older else 1]
        # What is seen is put together here, in parts that are taken once.
        first, second = 1 + len(self._angles), 1 + 2 * len(self._angles)
        self._shown = np.empty(second + self._velocities + len(self._constraint))
        self._sines, self._cosines = self._shown[1:first], self._shown[first:second]
        self._clipped = self._shown[second:]
        self._speeds, self._pushes = self._clipped[: self._velocities], self._clipped[self._velocities :]

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        self._ctrl[:] = action
        self._mj_step(self._model, self._data, self._frames)
        self.observe(seen)
        height = self._tip.item(2)
        over: bool = height <= 1
        record[0], record[1] = self._tip.item(0), height
        record[2], record[3] = self._qvel.item(1), self._qvel.item(2)
        record[4] = over
        return over

    def observe(self, seen: Seen) -> None:
        self._shown[0] = self._qpos.item(0)
        np.sin(self._angles, out=self._sines)
        np.cos(self._angles, out=self._cosines)
        self._speeds[:] = self._qvel
        self._pushes[:] = self._constraint
        clip(self._clipped, _LOW, _HIGH, out=self._clipped)
        seen[:] = self._shown

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        # Powers of single numbers, as Gymnasium takes them: arrays would be squared by a product, which may differ.
        alive, last = self._bonuses
        rewards = [
            (last if over else alive) - (0.01 * x**2 + (y - 2) ** 2) - (1e-3 * v1**2 + 5e-3 * v2**2)
            for step in records.tolist()
            for x, y, v1, v2, over in step
        ]
        return np.array(rewards, dtype=np.float64).reshape(records.shape[:2])

    def _noise_scale(self) -> float:
        return 0.1 if self._older else super()._noise_scale()

    def _place(self, rng: np.random.Generator) -> None:
        self._place_with_normal_speed(rng)
