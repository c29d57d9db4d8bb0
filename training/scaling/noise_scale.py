"""KungFu's rule: the number of workers follows the gradient noise scale.

With N_k the noise scale of round k, the paper grows the workers in proportion to the growth of the scale, and never
removes one: I_k = max(I_{k−1}, I_first · N_k / N_first). The code that Nitro compares itself with multiplies the
*present* number by N_k / N_first whenever N_k is above the first one, which compounds: `rule = "released"`. The first
is that of the oldest round of the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from training.base_model import setting
from training.engine.reports import RoundReport
from training.rl.figures import LearningFigures
from training.rl.measures.measures import AnyMeasure
from training.rl.measures.noise_scale import NoiseScaleSpec
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score


class NoiseScale(PolicyBase):
    """KungFu: grows with the noise of the gradients, and never shrinks."""

    within_most = ("actors_min",)

    kind: Literal["noise_scale"] = "noise_scale"
    actors_min: int = setting(8, "Fewest actors", ge=1, le=4096)
    actors_max: int = setting(64, "Most actors", ge=1, le=4096)
    rule: Literal["proportional", "released"] = setting(
        "proportional",
        "Rule",
        "Released: as in the code that was published for Nitro, which compounds.",
        advanced=True,
    )

    @property
    def largest(self) -> int:
        return self.actors_max

    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        return (NoiseScaleSpec(),)

    def actor_range(self, round_no: int) -> tuple[int, int]:
        return self.actors_min, self.actors_max

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        measured = [
            (report, found)
            for report in history
            if (found := report.figures_of(LearningFigures).noise_scale) is not None
        ]
        scales = [found.scale for _, found in measured]
        known = [scale for scale in scales if scale is not None and scale > 0.0]
        present = history[-1].actors if history else self.actors_min
        if len(known) < 2:
            return clip_to_bounds(
                self._held(present), bounds, "there is no earlier noise scale to compare with"
            )
        if scales[-1] is None:
            last = history[-1].figures_of(LearningFigures).noise_scale
            because = f" ({last.note})" if last is not None and last.note else ""
            return clip_to_bounds(
                self._held(present), bounds, f"this round's noise scale is unknown{because}: as before"
            )
        growth = scales[-1] / known[0]
        if self.rule == "released":
            requested = present * growth if growth > 1.0 else present
        else:
            requested = max(present, self.actors_min * growth)
        first = next(report for report, found in measured if found.scale == known[0])
        words = f"noise scale {scales[-1]:,.0f} is {growth:.2f} times that of round {first.round_no}"
        # Clipped before it is rounded: over a first scale of almost nothing, growth may be infinite.
        return clip_to_bounds(self._held(round(min(requested, self.actors_max))), bounds, words)

    def _held(self, actors: int) -> int:
        return max(self.actors_min, min(self.actors_max, actors))
