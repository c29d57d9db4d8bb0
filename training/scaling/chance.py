"""A random number of actors: the control that every informed policy must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class Chance(PolicyBase):
    """Random: any number of {actors} between two, drawn for each {round}."""

    within_most = ("actors_min",)

    kind: Literal["chance"] = "chance"
    actors_min: int = setting(8, "Fewest {actors}", ge=1, le=4096)
    actors_max: int = setting(64, "Most {actors}", ge=1, le=4096)

    @property
    def largest(self) -> int:
        return self.actors_max

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        drawn = np.random.Generator(np.random.PCG64(seed)).integers(self.actors_min, self.actors_max + 1)
        return clip_to_bounds(int(drawn), bounds, f"drawn between {self.actors_min} and {self.actors_max}")
