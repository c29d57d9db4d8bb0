"""The same number of actors in every round: the baseline that each other policy has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class Fixed(PolicyBase):
    """Fixed: the same number of {actors} in every {round}."""

    kind: Literal["fixed"] = "fixed"
    actors: int = Field(8, ge=1, le=4096, title="{Actors}", description="Functions started in every {round}.")

    @property
    def largest(self) -> int:
        return self.actors

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        return clip_to_bounds(self.actors, bounds, f"fixed at {self.actors}")
