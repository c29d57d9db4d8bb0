"""Learning curves of sides: over steps, time or dollars; of several seeds their interquartile mean with its interval.

All rounds that are drawn come in one query, all evaluations in another, however many runs are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from django.db.models import F, Q

from webapp.comparing.sides import Side
from webapp.jobs.models import Job, Round
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.papers.statistics import interquartile_mean

Doubles = npt.NDArray[np.float64]
AXES = ("steps", "time", "usd")
ROUNDS_OF_A_RUN = 300
POINTS = 120
_DRAWS = 400
_WEIGHT = 0.9
_LEVEL = 0.95


class RunCurve(NamedTuple):
    """A run's smoothed return at each round that has one, with what had been done, taken and paid by then."""

    steps: Doubles
    time: Doubles
    usd: Doubles
    smoothed: Doubles


def curves_of(jobs: Sequence[Job]) -> dict[str, RunCurve]:
    """By job; of a long run every n-th round and the last. Runs without a finished round have empty curves."""
    every = (F("job__round_no") + ROUNDS_OF_A_RUN) / ROUNDS_OF_A_RUN
    rows = (
        Round.objects.filter(job__in=[job.pk for job in jobs])
        .annotate(left=F("round_no") % every)
        .filter(Q(left=0) | Q(round_no=F("job__round_no")))
        .order_by("job", "round_no")
        .values_list(
            "job",
            "report__total_env_steps",
            "report__started_s",
            "report__total_s",
            "report__spend__spent_picodollars",
            "report__episode_return_mean",
        )
    )
    points: dict[str, list[tuple[float, float, float, float]]] = {job.pk: [] for job in jobs}
    for job, steps, started_s, total_s, spent, mean in rows:
        if mean is not None:
            points[job].append((steps, started_s + total_s, (spent or 0) / PICODOLLARS_PER_USD, mean))
    return {job: _curve(found) for job, found in points.items()}


def _curve(points: Sequence[tuple[float, float, float, float]]) -> RunCurve:
    columns = np.array(points, dtype=np.float64).reshape(-1, 4).T
    return RunCurve(columns[0], columns[1], columns[2], smoothed(columns[3]))


def smoothed(values: Doubles, weight: float = _WEIGHT) -> Doubles:
    """An exponential mean that starts unbiased, as on a job's page."""
    means, mean, mass = np.empty_like(values), 0.0, 0.0
    for at, value in enumerate(values):
        mean = weight * mean + (1 - weight) * value
        mass = weight * mass + (1 - weight)
        means[at] = mean / mass
    return means


def drawn(sides: Sequence[Side], curves: dict[str, RunCurve]) -> list[dict[str, Any]]:
    """For the chart: each side with its line (and band, of several runs) over every axis."""
    return [
        {
            "name": side.name,
            "place": side.place,
            "runs": len(side.jobs),
            "lines": {axis: _line([curves[job.pk] for job in side.jobs], axis) for axis in AXES},
        }
        for side in sides
    ]


def _line(runs: Sequence[RunCurve], axis: str) -> dict[str, list[float]]:
    """As far as the shortest run goes: beyond it, the mean would be of other runs than before."""
    runs = [run for run in runs if len(run.smoothed)]
    if not runs:
        return {"x": [], "y": []}
    xs = [getattr(run, axis) for run in runs]
    first, last = max(x[0] for x in xs), min(x[-1] for x in xs)
    if last <= first:  # such as dollars of what costs nothing
        return {"x": [], "y": []}
    if len(runs) == 1:
        keep = np.unique(np.linspace(0, len(xs[0]) - 1, POINTS).round().astype(int))
        return {"x": _short(xs[0][keep]), "y": _short(runs[0].smoothed[keep])}
    grid = np.linspace(first, last, POINTS)
    heights = np.stack([np.interp(grid, x, run.smoothed) for x, run in zip(xs, runs, strict=True)])
    mean, low, high = iqm_with_band(heights)
    return {"x": _short(grid), "y": _short(mean), "low": _short(low), "high": _short(high)}


def iqm_with_band(heights: Doubles, seed: int = 0) -> tuple[Doubles, Doubles, Doubles]:
    """[runs, points] → the interquartile mean at each point, and its 95 % percentile interval over draws of runs."""
    mean = np.array([interquartile_mean(column) for column in heights.T])
    picks = np.random.default_rng(seed).integers(0, len(heights), size=(_DRAWS, len(heights)))
    cut = len(heights) // 4
    ordered = np.sort(heights[picks], axis=1)[:, cut : len(heights) - cut]
    low, high = np.quantile(ordered.mean(axis=1), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return mean, low, high


def _short(values: Doubles) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
