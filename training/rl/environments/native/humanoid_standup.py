"""HumanoidStandup: paid for the height of its root, at the cost of actions and contact forces. It never ends."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.environments.native.copy import Row, Seen
from training.rl.environments.native.humanoid import FullBody


class HumanoidStandup(FullBody):
    """Records its height and the contact forces."""

    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self.width = 1 + len(self._forces)
        self._timestep_s = base.model.opt.timestep
        # The older version has constants where the newer one takes arguments.
        self._impact_range: tuple[float, float] = (-inf, 10)
        self._cost_weight, self._impact_weight = 0.1, 0.5e-6
        if not self._older:
            self._impact_range = base._impact_cost_range
            self._cost_weight, self._impact_weight = base._ctrl_cost_weight, base._impact_cost_weight

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        self._ctrl[...] = action
        self._mj_step(self._model, self._data, self._frames)
        self._mj_contact_forces(self._model, self._data)
        record[0] = self._position[2]
        record[1:] = self._forces
        self.observe(seen)
        return False

    def rewards(self, records: Row, actions: npt.NDArray[np.float32]) -> Row:
        height = records[..., 0] / self._timestep_s
        effort = self._cost_weight * np.sum(np.square(actions.astype(np.float64)), axis=-1)
        impact = np.clip(
            self._impact_weight * np.sum(np.square(records[..., 1:]), axis=-1), *self._impact_range
        )
        rewards: Row = height - effort - impact + 1
        return rewards

    def noise_scale(self) -> float:
        return 0.01 if self._older else super().noise_scale()
