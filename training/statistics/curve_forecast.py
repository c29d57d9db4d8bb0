"""How far a learning curve may still get: the smoothed return at a later step, with a band of 80 %.

What a run gained over the last stretch of training is the measure of what it may gain over the next stretch that is as
long on a logarithmic scale, because learning slows down. How runs really went on, in that measure, was read off the
stored runs of research/results (806 curves of seven tasks): a test holds the band against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, hypot, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FEWEST_POINTS = 8
"""Fewer points of a curve show no trend."""
_WEIGHT = 0.9
_NOISE_OVER = 20
_FURTHEST = 4.0
"""How many times as long as the curve its forecast may reach: of shorter curves the band held too seldom."""
_MULTIPLES = (-0.3, 1.2, 4.5)
"""The 10th, 50th and 90th percentile of how stored runs went on, in units of their gain so far and of their noise."""


class CurveBand(NamedTuple):
    """A tenth of runs ends below `p10`, half below `p50`, a tenth above `p90` (for what is better when it is lower, the
    other way round: then p10 is above p90)."""

    p10: float
    p50: float
    p90: float


def smoothed(scores: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return an exponential mean that starts unbiased."""
    means, mean, mass = np.empty(len(scores)), 0.0, 0.0
    for at, value in enumerate(scores):
        mean = _WEIGHT * mean + (1 - _WEIGHT) * value
        mass = _WEIGHT * mass + (1 - _WEIGHT)
        means[at] = mean / mass
    return means


def predict_score(
    at: Sequence[float], scores: Sequence[float], until: float, *, higher_is_better: bool = True
) -> CurveBand | None:
    """Return the band of the smoothed score at step `until`; None for a curve of too few points, or one too short to
    say anything about a step so far away.

    `at` are the steps of the scores, increasing and positive.
    """
    if len(at) < FEWEST_POINTS or until > _FURTHEST * at[-1]:
        return None
    smooth = smoothed(scores)
    now, last = float(at[-1]), float(smooth[-1])
    stretch = max(0.0, log(max(until, now) / now))
    back = max(now * exp(-stretch), float(at[2]))
    toward = 1.0 if higher_is_better else -1.0
    gained = toward * (last - float(np.interp(back, at, smooth)))
    trend = gained * stretch / max(log(now / back), 1e-9) if stretch else 0.0
    noise = float(np.std(np.asarray(scores[-_NOISE_OVER:]) - smooth[-_NOISE_OVER:]))
    unit = hypot(trend, noise * min(1.0, stretch / log(2.0)) if stretch else 0.0)
    return CurveBand(*(last + toward * multiple * unit for multiple in _MULTIPLES))
