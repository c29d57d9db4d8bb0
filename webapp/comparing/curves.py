"""Learning curves of sides over steps, time or dollars: of several seeds the interquartile mean with its interval.

All rounds that are drawn come in one query, however many runs are compared. A curve without new rounds is
kept, and so is every line that was drawn of the same curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db.models import F, Q

from training.environments import catalogue
from training.statistics import Reached, interquartile_mean, interquartile_means, time_to_threshold
from webapp.comparing.groups import Side
from webapp.jobs.models import Job, Round
from webapp.money.amounts import PICODOLLARS_PER_USD

Doubles = npt.NDArray[np.float64]
AXES = ("steps", "rounds", "wall", "time", "usd")
ROUNDS_OF_A_RUN = 300
POINTS = 120
_DRAWS = 400
_WEIGHT = 0.9
_LEVEL = 0.95
MOST_KEPT = 1_000
"""Curves and lines cached in one process: about ten megabytes."""


@dataclass(frozen=True, eq=False)
class RunCurve:
    """A run's smoothed return at each round that has one, with the steps, rounds, times and dollars up to then.

    Each is equal to itself alone, so that lines may be kept by the curves they are of.
    """

    steps: Doubles
    rounds: Doubles
    wall: Doubles
    time: Doubles
    usd: Doubles
    smoothed: Doubles


_kept: dict[tuple[str, int], RunCurve] = {}
"""Keyed by job and the number of its last event; the oldest entries are dropped first."""


def curves_of(jobs: Sequence[Job]) -> dict[str, RunCurve]:
    """By job; of a long run every n-th round and the last. Runs without a finished round have empty curves."""
    found = {job.pk: curve for job in jobs if (curve := _kept.get((job.pk, job.last_seq))) is not None}
    unknown = [job for job in jobs if job.pk not in found]
    if unknown:
        points = _points(unknown)
        for job in unknown:
            found[job.pk] = _kept[job.pk, job.last_seq] = _curve(points[job.pk])
        while len(_kept) > MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
    return found


def _points(jobs: Sequence[Job]) -> dict[str, list[tuple[float, ...]]]:
    """Of each job: steps, round, wall time, time, dollars and return of the rounds that are drawn."""
    every = (F("job__round_no") + ROUNDS_OF_A_RUN) / ROUNDS_OF_A_RUN
    rows = (
        Round.objects.filter(job__in=[job.pk for job in jobs])
        .annotate(left=F("round_no") % every)
        .filter(Q(left=0) | Q(round_no=F("job__round_no")))
        .order_by("job", "round_no")
        .values_list(
            "job",
            "report__total_env_steps",
            "round_no",
            "at",
            "report__started_s",
            "report__total_s",
            "report__spend__spent_picodollars",
            "report__episode_return_mean",
        )
    )
    points: dict[str, list[tuple[float, ...]]] = {job.pk: [] for job in jobs}
    began = {job.pk: job.started_at for job in jobs}
    for pk, steps, round_no, at, started_s, total_s, spent, mean in rows:
        if mean is not None:
            wall_s = (at - start).total_seconds() if (start := began[pk]) else 0.0
            usd = (spent or 0) / PICODOLLARS_PER_USD
            points[pk].append((steps, round_no, wall_s, started_s + total_s, usd, mean))
    return points


def _curve(points: Sequence[tuple[float, ...]]) -> RunCurve:
    steps, rounds, wall, time, usd, means = np.array(points, dtype=np.float64).reshape(-1, 6).T
    return RunCurve(steps, rounds, wall, time, usd, smoothed(means))


def smoothed(values: Doubles) -> Doubles:
    """An exponential mean that starts unbiased, as on a job's page."""
    means, mean, mass = np.empty_like(values), 0.0, 0.0
    for at, value in enumerate(values):
        mean = _WEIGHT * mean + (1 - _WEIGHT) * value
        mass = _WEIGHT * mass + (1 - _WEIGHT)
        means[at] = mean / mass
    return means


def drawn(sides: Sequence[Side], curves: dict[str, RunCurve]) -> list[dict[str, Any]]:
    """For the chart: each side with its line (and band, of several runs) over every axis."""
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
    """A side's line up to the end of its shortest run: beyond it, the mean would be over other runs."""
    runs = [run for run in of if len(run.smoothed)]
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
    """How many of all runs got their smoothed return to the goal, and the dollars and the seconds by which half of them
    had: None where fewer than half did. A run that ended before, or has not begun, did not get there."""

    usd: float | None
    time_s: float | None
    reached: int
    runs: int


def goal_of(sides: Sequence[Side], curves: Mapping[str, RunCurve]) -> Goal | None:
    """The environment's reference, where half of some side's runs got there; else as far as the weakest side got."""
    ends = [_ends(side, curves) for side in sides]
    known = [interquartile_mean(one) for one in ends if one]
    if not known:
        return None
    names = {job.environment for side in sides for job in side.jobs}
    entry = catalogue.ENTRIES.get(names.pop()) if len(names) == 1 else None
    if entry is not None and entry.reference_return is not None:
        reference = Goal(entry.reference_return, "the environment's reference")
        if any(getting_to(reference, side, curves).usd is not None for side in sides):
            return reference
    return Goal(sides[0].score.worst(known), "as far as the weakest side got")


def getting_to(goal: Goal, side: Side, curves: Mapping[str, RunCurve]) -> Getting:
    runs = [curves[job.pk] for job in side.jobs]
    usd = [_reached(run, run.usd, goal, side.toward) for run in runs]
    return Getting(
        usd=_half_by(usd),
        time_s=_half_by([_reached(run, run.time, goal, side.toward) for run in runs]),
        reached=sum(one.observed for one in usd),
        runs=len(runs),
    )


def _half_by(runs: Sequence[Reached]) -> float | None:
    there = sorted(one.at for one in runs if one.observed)
    half = ceil(len(runs) / 2)
    return there[half - 1] if len(there) >= half else None


def _reached(run: RunCurve, at: np.ndarray, goal: Goal, towards: int) -> Reached:
    """Its end counts as its place: rounding must not keep the weakest side from where it is."""
    merits = towards * run.smoothed + 1e-9 * abs(goal.value)
    return time_to_threshold(at.tolist(), merits.tolist(), towards * goal.value, held=1)


def _ends(side: Side, curves: Mapping[str, RunCurve]) -> list[float]:
    return [float(curves[job.pk].smoothed[-1]) for job in side.jobs if _ran(job.pk, curves)]


def _ran(job_id: str, curves: Mapping[str, RunCurve]) -> bool:
    return len(curves[job_id].smoothed) > 0
