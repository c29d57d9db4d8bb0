"""Scale-in: one actor fewer whenever a dollar gains less than it did. It needs no training.

After each change of the number of actors, the first few rounds say what a dollar gains. Once the last rounds gain
clearly less, one actor ends, and the comparison begins again with what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from training.base_model import setting
from training.engine.reports import RoundReport
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score

_PICODOLLARS = 10**12


class ScaleIn(PolicyBase):
    """Scale-in: one actor fewer when a dollar gains less than before."""

    within_most = ("actors_min",)

    kind: Literal["scale_in"] = "scale_in"
    actors_max: int = setting(32, "Actors at first", ge=1, le=4096)
    actors_min: int = setting(1, "Fewest actors", ge=1, le=4096)
    window: int = setting(2, "Window", ge=1, le=60, unit="rounds")
    share: float = setting(
        0.8, "Falls below", "Of what a dollar gained in the first rounds with this many actors.", gt=0, le=1
    )

    @property
    def largest(self) -> int:
        return self.actors_max

    def actor_range(self, round_no: int) -> tuple[int, int]:
        return self.actors_min, self.largest

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        if not history:
            return clip_to_bounds(self.actors_max, bounds, f"{self.actors_max} at first")
        now = min(history[-1].actors, self.actors_max)
        gains = self._gains(history, score)
        if len(gains) < 2 * self.window:
            return clip_to_bounds(now, bounds, f"as before: {len(gains)} rounds say what {now} gain")
        first, last = (sum(part) / self.window for part in (gains[: self.window], gains[-self.window :]))
        why = f"a dollar gains {last:.3g} of {score.name}, {first:.3g} when there were {now} at first"
        if now <= self.actors_min or last >= self.share * first:
            return clip_to_bounds(now, bounds, f"as before: {why}")
        return clip_to_bounds(now - 1, bounds, f"one fewer: {why}")

    def _gains(self, history: Sequence[RoundReport], score: Score) -> list[float]:
        """Return what a dollar gained in each round since the number of actors changed, where that is known."""
        since = len(history)
        while since and history[since - 1].actors == history[-1].actors:
            since -= 1
        sign = 1.0 if score.higher_is_better else -1.0
        before = next((one.score for one in reversed(history[:since]) if one.score is not None), None)
        gains = []
        for report in history[since:]:
            if report.score is None:
                continue
            if before is not None and report.cost_picodollars > 0:
                gains.append(sign * (report.score - before) / (report.cost_picodollars / _PICODOLLARS))
            before = report.score
        return gains
