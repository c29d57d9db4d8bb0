"""HalfCheetah: runs on whatever happens; its first speeds are normal."""

from __future__ import annotations

import numpy as np

from training.rl.environments.native.runner import Runner


class HalfCheetah(Runner):
    def _place(self, rng: np.random.Generator) -> None:
        self._place_with_normal_speed(rng)
