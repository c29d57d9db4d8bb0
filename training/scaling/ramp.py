"""A straight line from one number of actors to another: the simplest schedule that changes at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class Ramp(PolicyBase):
    """Ramp: from one number of {actors} to another in a straight line."""

    kind: Literal["ramp"] = "ramp"
    actors_first: int = setting(4, "{Actors} in the first {round}", ge=1, le=4096)
    actors_last: int = setting(16, "{Actors} at the end of the ramp", ge=1, le=4096)
    over_rounds: int = setting(50, "Length of the ramp", ge=1, le=100_000, unit="{rounds}")

    @property
    def largest(self) -> int:
        return max(self.actors_first, self.actors_last)

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        # The history may hold only the last rounds, so its length does not count.
        rounds = history[-1].round_no if history else 0
        done = min(1.0, rounds / self.over_rounds)
        actors = round(self.actors_first + (self.actors_last - self.actors_first) * done)
        return clip_to_bounds(
            actors, bounds, f"{100 * done:.0f} % of the ramp from {self.actors_first} to {self.actors_last}"
        )
