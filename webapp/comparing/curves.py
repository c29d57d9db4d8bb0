"""Curves of sides over steps, time or dollars: of several seeds the interquartile mean with its interval. And what it
took them to reach a goal.

Every line that was drawn of the same curves is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from training.rl.environments import catalogue
from training.statistics.few_seeds import interquartile_mean, interquartile_means
from webapp.comparing.groups import Side
from webapp.jobs.charts.score_curves import MOST_KEPT, Doubles, RunCurve, arrival, curves_of
from webapp.jobs.scores import Basis

__all__ = ["AXES", "RunCurve", "curves_of"]
AXES = ("steps", "rounds", "wall", "time", "usd")
POINTS = 120
_DRAWS = 400
_LEVEL = 0.95
WEAKEST_SIDE = "as far as the weakest side got"


def drawn_by(curves: Mapping[str, RunCurve]) -> Basis:
    """Return what the chart draws: evaluations, if each run that has begun was evaluated twice at least."""
    begun = [curve for curve in curves.values() if _has_begun(curve)]
    enough = begun and all(curve.basis == "evaluation" and len(curve.scores) > 1 for curve in begun)
    return "evaluation" if enough else "training"


def _has_begun(curve: RunCurve) -> bool:
    return len(curve.scores) > 0 or (curve.training is not None and len(curve.training.scores) > 0)


def drawn(sides: Sequence[Side], curves: Mapping[str, RunCurve]) -> list[dict[str, Any]]:
    """For the chart: each side with its line (and band, of several runs) over every axis."""
    if drawn_by(curves) == "training":
        curves = {pk: curve.training or curve for pk, curve in curves.items()}
    return [
        {
            "name": side.name,
            "place": side.place,
            "runs": len(side.jobs),
            "lines": {axis: _line(tuple(curves[job.pk] for job in side.jobs), axis) for axis in AXES},
        }
        for side in sides
    ]


@lru_cache(MOST_KEPT)
def _line(of: tuple[RunCurve, ...], axis: str) -> dict[str, list[float]]:
    """A side's line. A run that is over keeps its last score, so that the mean is over the same runs everywhere; beyond
    the end of a run that is not over nothing is drawn.
    """
    runs = [run for run in of if len(run.scores)]
    if not runs:
        return {"x": [], "y": []}
    xs = [getattr(run, axis) for run in runs]
    going_on = [x[-1] for x, run in zip(xs, runs, strict=True) if not run.is_over]
    first, last = max(x[0] for x in xs), min(going_on) if going_on else max(x[-1] for x in xs)
    if last <= first:  # such as dollars of what costs nothing
        return {"x": [], "y": []}
    if len(runs) == 1:
        keep = np.unique(np.linspace(0, len(xs[0]) - 1, POINTS).round().astype(int))
        return {"x": _short(xs[0][keep]), "y": _short(runs[0].scores[keep])}
    grid = np.linspace(first, last, POINTS)
    heights = np.stack([np.interp(grid, x, run.scores) for x, run in zip(xs, runs, strict=True)])
    mean, low, high = iqm_with_band(heights)
    return {"x": _short(grid), "y": _short(mean), "low": _short(low), "high": _short(high)}


def iqm_with_band(heights: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """[runs, points] → the interquartile mean at each point, and its 95 % percentile interval over draws of runs."""
    picks = np.random.default_rng(0).integers(0, len(heights), size=(_DRAWS, len(heights)))
    means = interquartile_means(heights[picks])
    low, high = np.quantile(means, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return interquartile_means(heights[None])[0], low, high


def _short(values: Doubles) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


@dataclass(frozen=True)
class Goal:
    """A return to get to, and what it is."""

    value: float
    words: str


@dataclass(frozen=True)
class Getting:
    """How many of all runs got their score to the goal, and the dollars and the seconds by which half of them
    had: None where fewer than half did. A run that ended before, or has not begun, did not get there."""

    usd: float | None
    time_s: float | None
    reached: int
    runs: int


def goal_of(sides: Sequence[Side], curves: Mapping[str, RunCurve]) -> Goal | None:
    """The environment's reference, where half of some side's runs got there; else as far as the weakest side got."""
    ends = [_ends(side, curves) for side in sides]
    known = [interquartile_mean(group) for group in ends if group]
    if not known:
        return None
    names = {job.subject for side in sides for job in side.jobs}
    entry = catalogue.ENTRIES.get(names.pop()) if len(names) == 1 else None
    if entry is not None and entry.reference_score is not None:
        reference = Goal(entry.reference_score, "the environment's reference")
        if any(getting_to(reference, side, curves).usd is not None for side in sides):
            return reference
    return Goal(sides[0].score.worst(known), WEAKEST_SIDE)


def getting_to(goal: Goal, side: Side, curves: Mapping[str, RunCurve]) -> Getting:
    runs = [curves[job.pk] for job in side.jobs]
    arrivals = [arrival(run, goal.value, side.score) for run in runs]
    return Getting(
        usd=_half_by([end.usd for end in arrivals if end is not None], len(runs)),
        time_s=_half_by([end.time_s for end in arrivals if end is not None], len(runs)),
        reached=sum(end is not None for end in arrivals),
        runs=len(runs),
    )


def _half_by(arrivals: Sequence[float], runs: int) -> float | None:
    half = ceil(runs / 2)
    return sorted(arrivals)[half - 1] if len(arrivals) >= half else None


def _ends(side: Side, curves: Mapping[str, RunCurve]) -> list[float]:
    return [float(curves[job.pk].scores[-1]) for job in side.jobs if len(curves[job.pk].scores)]
