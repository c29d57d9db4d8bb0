"""The same number of actors in every round: the baseline that each other policy has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class Fixed(PolicyBase):
    """Fixed: the same number of {actors} in every {round}."""

    kind: Literal["fixed"] = "fixed"
    actors: int = setting(8, "{Actors}", "Functions started in every {round}.", ge=1, le=4096)

    @property
    def largest(self) -> int:
        return self.actors

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        return clip_to_bounds(self.actors, bounds, f"fixed at {self.actors}")
