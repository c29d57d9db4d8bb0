"""Hydrozoa's schedule as Nitro's authors ran it: it starts small and doubles after a fixed number of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class Doubling(PolicyBase):
    """Hydrozoa: doubles the {actors} every so many {rounds}."""

    within_most = ("actors_first",)

    kind: Literal["doubling"] = "doubling"
    actors_first: int = setting(8, "{Actors} at first", ge=1, le=4096)
    actors_max: int = setting(64, "Most {actors}", ge=1, le=4096)
    every_rounds: int = setting(10, "Doubled every", ge=1, le=100_000, unit="{rounds}")

    @property
    def largest(self) -> int:
        return self.actors_max

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        rounds = history[-1].round_no if history else 0
        # Beyond 12 doublings every bound there is has been passed.
        times = min(rounds // self.every_rounds, 12)
        actors = min(self.largest, self.actors_first * 2**times)
        return clip_to_bounds(actors, bounds, f"doubled {times} times, every {self.every_rounds} {{rounds}}")
