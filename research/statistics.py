"""Statistics of experiments beside those of `training.statistics.few_seeds`: pairs of seeds, families of claims,
times, curves.

Percentile intervals of few seeds are too narrow: with five pairs they miss in 10 % of all cases where 5 % are meant.
Paired intervals are therefore widened as Student's t is wider than the normal distribution, after which two groups that
are alike come out so in 93 to 97 % (`tests/research/test_statistics.py`). In a family of claims p values far below 5 %
count. No draw of few pairs is that rare, so p values are Student's and not a share of draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr
from scipy.stats import rankdata

from training.statistics.few_seeds import (
    REPETITIONS,
    Doubles,
    Interval,
    Reached,
    batches,
    interquartile_means,
    matrix_of,
    percentile_interval,
    student_t,
)

# Pairs that all say the same, but for rounding, have no spread; their p value is the least that is ever said.
_NO_SPREAD = 1e-9
_LEAST_P = 1e-6

Environments = Literal["fixed", "drawn"]
"""Whether environments are the ones there are, or a sample of others that are meant as well."""


def paired_bootstrap(
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    *,
    compare: str = "ratio",
    environments: Environments = "fixed",
    level: float = 0.95,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> Interval:
    """IQM(ours) against IQM(theirs), as `ratio` or `difference`, with seeds drawn in pairs; widened for few of them.

    Stratified: pairs are drawn within each environment. If environments are `drawn`, they are drawn first. The ratio is
    the geometric mean over environments, the difference the plain one.
    """
    x, y = _pairs(ours, theirs)
    value = float(_compared(x[None], y[None], compare)[0])
    drawn = _paired_draws(x, y, compare, environments, repetitions, seed)
    return percentile_interval(value, _widened(value, drawn, x.shape, compare, level), level)


def paired_p_value(
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    *,
    compare: str = "ratio",
    environments: Environments = "fixed",
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> float:
    """Two-sided, by Student's t: how many standard errors the value is from no difference. The error is that of the
    draws, made larger by what drawing from few pairs leaves out of it.
    """
    x, y = _pairs(ours, theirs)
    value = float(_compared(x[None], y[None], compare)[0])
    drawn = _paired_draws(x, y, compare, environments, repetitions, seed)
    if compare == "ratio":
        value, drawn = float(np.log(value)), np.log(drawn)
    seeds, tasks = x.shape
    if seeds == 1:
        return 1.0
    error = float(drawn.std()) * float(np.sqrt(seeds / (seeds - 1)))
    if error <= abs(value) * _NO_SPREAD:
        return 1.0 if value == 0.0 else _LEAST_P
    return max(_LEAST_P, student_tails(abs(value) / error, tasks * (seeds - 1)))


def student_tails(t: float, freedom: int) -> float:
    """How probable it is that Student's t is this far from 0 or farther, to either side."""
    return 2.0 * float(stdtr(freedom, -t))


def widened_interval(
    value: float, drawn: Sequence[float] | Doubles, seeds: int, level: float = 0.95
) -> Interval:
    """The interval of draws of a mean over so many seeds, as much wider as Student's t is than the normal."""
    draws = np.asarray(drawn, dtype=np.float64)
    middle = float(draws.mean())
    return percentile_interval(value, _widened(middle, draws, (seeds, 1), "difference", level), level)


def _pairs(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> tuple[Doubles, Doubles]:
    x, y = matrix_of(ours), matrix_of(theirs)
    if x.shape != y.shape:
        raise ValueError(f"pairs need scores of the same seeds; there are {x.shape} and {y.shape}")
    return x, y


def _paired_draws(
    x: Doubles, y: Doubles, compare: str, drawing: Environments, repetitions: int, seed: int
) -> Doubles:
    rng = np.random.default_rng(seed)
    seeds, environments = x.shape
    drawn: list[Doubles] = []
    for count in batches(repetitions):
        columns = rng.integers(0, environments, size=(count, 1, environments))
        if drawing == "fixed":
            columns = np.arange(environments)[None, None, :]
        rows = rng.integers(0, seeds, size=(count, seeds, environments))
        drawn.append(_compared(x[rows, columns], y[rows, columns], compare))
    return np.concatenate(drawn)


def _widened(value: float, drawn: Doubles, shape: tuple[int, ...], compare: str, level: float) -> Doubles:
    """The draws, as much farther from the value as Student's t is wider than the normal distribution. Ratios are moved
    as logarithms.
    """
    seeds, environments = shape
    factor = student_t(level, max(1, environments * (seeds - 1))) / student_t(level, None)
    if compare == "ratio":
        ratios: Doubles = value * (drawn / value) ** factor
        return ratios
    differences: Doubles = value + factor * (drawn - value)
    return differences


def holm(p_values: Sequence[float]) -> list[float]:
    """p values of a family of claims, adjusted so that the chance of any false one stays what it was said to be."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def rank_correlation(x: Sequence[float], y: Sequence[float], given: Sequence[float]) -> float:
    """Spearman's correlation of x and y given a third: the partial correlation of their ranks. 0 where one is flat."""
    ranks = [rankdata(one) for one in (x, y, given)]
    xy, xz, yz = (_correlation(ranks[a], ranks[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
    left = (1.0 - xz * xz) * (1.0 - yz * yz)
    return float((xy - xz * yz) / np.sqrt(left)) if left > 1e-12 else 0.0


def median_time(times: Sequence[Reached]) -> float | None:
    """The Kaplan–Meier median; None where fewer than half are known to have got there."""
    alive = 1.0
    for moment in sorted({one.at for one in times if one.observed}):
        at_risk = sum(one.at >= moment for one in times)
        ended = sum(one.at == moment and one.observed for one in times)
        alive *= 1.0 - ended / at_risk
        if alive <= 0.5 + 1e-12:
            return moment
    return None


def penalised_mean_time(times: Sequence[Reached]) -> float:
    """PAR2: the mean time, with twice the limit for those that did not get there."""
    return float(np.mean([one.at if one.observed else 2.0 * one.at for one in times]))


def area_under(at: Sequence[float], scores: Sequence[float], until: float) -> float:
    """The mean height of the curve from 0 to `until` (steps or dollars): its area over its width.

    Straight lines between points; before the first point and after the last one the curve is flat.
    """
    if not len(at):
        raise ValueError("a curve without points has no area")
    if until <= 0:
        raise ValueError("the area needs a width greater than 0")
    x, y = np.asarray(at, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    inside = (x > 0) & (x < until)
    grid = np.concatenate([[0.0], x[inside], [until]])
    heights = np.interp(grid, x, y)
    return float(np.trapezoid(heights, grid) / until)


def _correlation(x: Doubles, y: Doubles) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / scale if scale > 0 else 0.0


def _compared(x: Doubles, y: Doubles, compare: str) -> Doubles:
    """[draws, seeds, environments] twice → one figure a draw, from the IQM of each environment."""
    draws, seeds, environments = x.shape
    left = interquartile_means(x.transpose(0, 2, 1).reshape(-1, seeds)).reshape(draws, environments)
    right = interquartile_means(y.transpose(0, 2, 1).reshape(-1, seeds)).reshape(draws, environments)
    if compare == "difference":
        differences: Doubles = (left - right).mean(axis=1)
        return differences
    if compare != "ratio":
        raise ValueError(f"compare by ratio or difference, not {compare!r}")
    if (left <= 0).any() or (right <= 0).any():
        raise ValueError("ratios need scores above 0; compare differences instead")
    ratios: Doubles = np.exp(np.log(left / right).mean(axis=1))
    return ratios
