"""The cost and time of each side to the same return: the side that ends highest is not always the cheapest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from training.environments import catalogue
from training.statistics import Reached, interquartile_mean, time_to_threshold
from webapp.comparing.curves import RunCurve
from webapp.comparing.groups import Side


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
    """The reference of the sides' environment, where half of some side's runs got there; else as far as the weakest
    side got."""
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
