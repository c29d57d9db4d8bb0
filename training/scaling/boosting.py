"""Nitro's boosting: many actors in rounds whose objective has an unusually flat surface, few in all others.

Curvature R_k is measured after update k (training/rl/measures/curvature.py). Over the window of the last n values

    S_k = (R_max − R_k) / (R_max − R_min) · d^k          I_k = clip(I_max · S_k, I_min, I_max)

so a low R scores high, and all scores shrink with the rounds: from round ln(I_min / I_max) / ln d on, I_k is always
I_min. `rule = "released"` is what the authors' published code does instead:

    R'_k = d^k / R_k      window: R' and the plain 1/R of each round, in turn, the last 6 values in all
    S_k = (R'_k − min) / (max − min)
    I_k = clip(I_max · S_k, clip(I_max · d^(k²), I_min, I_max), I_max)

`signal` replaces R by a signal that does not depend on the surface. These are the controls: without them no effect
can be attributed to curvature. By the released rule a constant signal leaves only the floor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from training.base_model import setting
from training.engine.reports import RoundReport
from training.rl.figures import LearningFigures
from training.rl.measures.curvature import RATIO_LIMIT, CurvatureSpec
from training.rl.measures.measures import AnyMeasure
from training.scaling.plan import Bounds, Plan, PolicyBase, clip_to_bounds
from training.tasks.score import Score

_LIKE = 1e-9
_NO_SPREAD = 0.5


class _Score(NamedTuple):
    value: float
    why: str
    floor: int


class Boosting(PolicyBase):
    """Nitro: boosts rounds whose objective is flat, less and less as training goes on."""

    within_most = ("actors_min", "actors_first")

    kind: Literal["boosting"] = "boosting"
    actors_min: int = setting(8, "Fewest actors", ge=1, le=4096)
    actors_max: int = setting(64, "Most actors", ge=1, le=4096)
    actors_first: int = setting(
        16, "Actors in the first round", "Nothing has been measured before it.", ge=1, le=4096, advanced=True
    )
    window: int = setting(6, "Window", "Rounds that are compared.", ge=2, le=60, unit="rounds")
    decay: float = setting(
        0.96, "Decay d", "Each round's scores are this much lower than the last one's.", gt=0, le=1
    )
    rule: Literal["paper", "released"] = setting(
        "paper",
        "Rule",
        "Released: as in the authors' published code, which differs from their paper.",
        advanced=True,
    )
    signal: Literal["measured", "flipped", "shuffled", "constant"] = setting(
        "measured",
        "Signal",
        "Anything but measured is a control: it ignores what the curvature says.",
        advanced=True,
    )
    curvature: CurvatureSpec = CurvatureSpec()

    @property
    def largest(self) -> int:
        return self.actors_max

    @property
    def measures(self) -> tuple[AnyMeasure, ...]:
        """The curvature, for the controls as well, so that all arms do the same work."""
        return (self.curvature,)

    def actor_range(self, round_no: int) -> tuple[int, int]:
        """The bounds of the round. In the paper's rule the upper one shrinks with d^k; in the released rule the lower
        one shrinks with d^(k²).
        """
        if round_no <= 1:
            return self.actors_first, self.actors_first
        k = round_no - 1
        if self.rule == "released":
            return self._floor(k), self.actors_max
        return self.actors_min, max(self.actors_min, int(self.actors_max * self.decay**k))

    def _floor(self, k: int) -> int:
        early = self.actors_max * self.decay ** (k * k)
        return max(self.actors_min, min(self.actors_max, int(early)))

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        if not history:
            return clip_to_bounds(
                self.actors_first, bounds, f"the first round starts with {self.actors_first}"
            )
        k = history[-1].round_no
        ratios = [(report.round_no, self._ratio(report)) for report in history[-max(self.window, 6) :]]
        scored = (self._released if self.rule == "released" else self._paper)(k, ratios, seed)
        requested = int(self.actors_max * scored.value)
        actors = max(scored.floor, min(self.actors_max, requested))
        done = f"boost to {actors} of {self.actors_max}" if actors > scored.floor else f"{actors}, the fewest"
        curved = history[-1].figures_of(LearningFigures).curvature
        instead = f"; {curved.note}" if curved is not None and curved.note and self._uses_own_ratio else ""
        return clip_to_bounds(actors, bounds, f"{scored.why}: {done}{instead}")

    @property
    def _uses_own_ratio(self) -> bool:
        """Whether this round's own R decides."""
        return self.signal in ("measured", "flipped")

    def _ratio(self, report: RoundReport) -> float | None:
        curved = report.figures_of(LearningFigures).curvature
        return curved.ratio if curved is not None else None

    def _paper(self, k: int, ratios: Sequence[tuple[int, float | None]], seed: int) -> _Score:
        shrunk = self.decay**k
        own = ratios[-1][1]
        if own is None:
            return self._middling(shrunk, f"round {k} has no R")
        # An R at its bound cannot be compared: beside it all others would be the lowest.
        window = [ratio for _, ratio in ratios[-self.window :] if ratio is not None and ratio < RATIO_LIMIT]
        if self._uses_own_ratio and own >= RATIO_LIMIT:
            return _Score(
                shrunk if self.signal == "flipped" else 0.0, "R is at its upper bound", self.actors_min
            )
        if len(ratios) == 1 and k == 1:
            return _Score(
                shrunk, f"R {own:,.2f} is the first: score {shrunk:.2f} ({self.decay}^{k})", self.actors_min
            )
        if not window:
            return self._middling(shrunk, "no R of the window is below its bound")
        if self.signal == "shuffled":
            own = window[int(np.random.Generator(np.random.PCG64(seed)).integers(len(window)))]
        low, high = min(window), max(window)
        if self.signal == "constant":
            return self._middling(shrunk, "R is held constant")
        if high - low <= _LIKE * max(1.0, abs(high)):
            return self._middling(shrunk, f"the last {len(window)} R are alike")
        place = (high - own) / (high - low)
        if self.signal == "flipped":
            place = 1.0 - place
        where = (
            "the lowest"
            if own == low
            else "the highest"
            if own == high
            else f"at {100 * place:.0f} % of the way down"
        )
        word = "R" if self.signal == "measured" else f"R ({self.signal})"
        why = f"{word} {own:,.2f} is {where} of the last {len(window)} rounds: score {place * shrunk:.2f}"
        return _Score(place * shrunk, f"{why} ({place:.2f} × {self.decay}^{k})", self.actors_min)

    def _middling(self, shrunk: float, what: str) -> _Score:
        score = _NO_SPREAD * shrunk
        return _Score(
            score, f"{what}, so the score is half of the highest possible: {score:.2f}", self.actors_min
        )

    def _released(self, k: int, ratios: Sequence[tuple[int, float | None]], seed: int) -> _Score:
        """Score by the published code: its window holds R' and plain 1/R of each round in turn, without this round's
        1/R.
        """
        floor = self._floor(k)
        own = ratios[-1][1]
        if self.signal == "constant":
            return _Score(0.0, "R is held constant (released rule)", floor)
        if not _is_invertible(own):
            return _Score(0.0, f"round {k} has no R to invert", floor)
        if k == 1:
            return _Score(1.0, "the first R scores 1 (released rule)", floor)
        values: list[float] = []
        for round_no, ratio in ratios:
            if ratio is not None and _is_invertible(ratio):
                values += [self.decay**round_no / ratio, 1.0 / ratio]
        values = values[:-1][-6:]
        low, high, now = min(values), max(values), values[-1]
        if high - low <= _LIKE * max(1.0, abs(high)):
            return _Score(0.0, "all R of the window are alike (released rule)", floor)
        if self.signal == "shuffled":
            now = values[int(np.random.Generator(np.random.PCG64(seed)).integers(len(values)))]
        score = (now - low) / (high - low)
        if self.signal == "flipped":
            score = 1.0 - score
        word = "released rule" if self.signal == "measured" else f"released rule, {self.signal}"
        return _Score(score, f"1/R · {self.decay}^{k} = {now:.2f} scores {score:.2f} ({word})", floor)


def _is_invertible(ratio: float | None) -> bool:
    """Whether 1/R is a positive finite number: an R of next to nothing has no such inverse."""
    return ratio is not None and ratio > 0.0 and math.isfinite(1.0 / ratio)
