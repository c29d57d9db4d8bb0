"""A list of numbers of actors, one a round, written down beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import field_validator

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class ActorSchedule(PolicyBase):
    """Schedule: a number of {actors} for each {round}, known beforehand."""

    kind: Literal["schedule"] = "schedule"
    actors: tuple[int, ...] = setting(
        (16, 8),
        "{Actors} of each {round}",
        "The last one holds for all {rounds} after it.",
        min_length=1,
        max_length=10_000,
    )

    @field_validator("actors")
    @classmethod
    def in_range(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(not 1 <= actors <= 4096 for actors in value):
            raise ValueError("each round must have between 1 and 4096 actors")
        return value

    @property
    def largest(self) -> int:
        return max(self.actors)

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        done = history[-1].round_no if history else 0
        place = min(done, len(self.actors) - 1)
        return clip_to_bounds(
            self.actors[place], bounds, f"number {place + 1} of {len(self.actors)} on the schedule"
        )
