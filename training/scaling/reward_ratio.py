"""MinionsRL's comparator "Adapt": the nearer the target, the more actors.

    I_k = clip(Ĵ / J · I_max, 1, I_max),   Ĵ the mean return of the last n rounds, J the target return

The paper prints Ĵ as a sum over n + 1 rounds without dividing; its text says average, which is used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import model_validator

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class RewardRatio(PolicyBase):
    """MinionsRL-Adapt: actors in proportion to how near the return is to its target."""

    within_most = ("actors_min",)

    kind: Literal["reward_ratio"] = "reward_ratio"
    actors_min: int = setting(1, "Fewest actors", ge=1, le=4096)
    actors_max: int = setting(32, "Most actors", ge=1, le=4096)
    target_return: float = setting(
        500.0, "Target return", "That of the environment; it must be more than the floor."
    )
    floor_return: float = setting(
        0.0,
        "Return of no skill",
        "Where returns begin: 0, or less where an untrained policy scores below it.",
        advanced=True,
    )
    window: int = setting(5, "Window", ge=1, le=60, unit="rounds")

    @model_validator(mode="after")
    def in_order(self) -> RewardRatio:
        if self.target_return <= self.floor_return:
            raise ValueError(
                "the target return must be more than the return of no skill: lower the latter where returns are below 0"
            )
        return self

    @property
    def largest(self) -> int:
        return self.actors_max

    def actor_range(self, round_no: int) -> tuple[int, int]:
        return self.actors_min, self.largest

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        seen = [report.score for report in history[-self.window :] if report.score is not None]
        if not seen:
            return clip_to_bounds(
                self.actors_min, bounds, f"no episode has ended yet: the fewest, {self.actors_min}"
            )
        mean = sum(seen) / len(seen)
        share = (mean - self.floor_return) / (self.target_return - self.floor_return)
        actors = max(self.actors_min, min(self.actors_max, round(share * self.actors_max)))
        where = f"{100 * share:.0f} % of the way to {self.target_return:,.0f}"
        return clip_to_bounds(
            actors, bounds, f"return {mean:,.0f} over the last {len(seen)} rounds is {where}"
        )
