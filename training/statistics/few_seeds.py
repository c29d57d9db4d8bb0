"""What a few seeds allow to say, in numpy. Scores are arrays of [seeds, tasks]; a vector is one task.

IQM, stratified bootstrap and probability of improvement are those of rliable (Agarwal et al. 2021), against which the
tests hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
REPETITIONS = 20_000
LEVEL = 0.95
_ONE_BATCH = 2_000


class Interval(NamedTuple):
    """An estimate and its two bounds."""

    value: float
    low: float
    high: float


class Reached(NamedTuple):
    """When something was reached; where it was not, `at` is the end of observation."""

    at: float
    observed: bool


def interquartile_mean(scores: npt.ArrayLike) -> float:
    """The mean of what is left when a quarter (rounded down) is cut off at each end, over all scores together."""
    return float(interquartile_means(np.asarray(scores, dtype=np.float64).reshape(1, -1))[0])


def bootstrap(scores: npt.ArrayLike, *, repetitions: int = REPETITIONS) -> Interval:
    """The interquartile mean of the scores and its interval: seeds are drawn again within each task."""
    matrix = matrix_of(scores)
    rng = np.random.default_rng(0)
    drawn: list[Doubles] = []
    for count in batches(repetitions):
        picks = rng.integers(0, len(matrix), size=(count, *matrix.shape))
        drawn.append(interquartile_means(np.take_along_axis(matrix[None], picks, axis=1).reshape(count, -1)))
    return percentile_interval(interquartile_mean(matrix), np.concatenate(drawn), LEVEL)


def student_t(level: float, freedom: int | None) -> float:
    """How many standard errors an interval of that level reaches to each side; None: of the normal distribution.

    With one or two degrees of freedom exactly, else by the expansion of Cornish and Fisher, which is off by less than
    2 % with three and less with more.
    """
    if freedom == 1:
        return float(np.tan(np.pi * level / 2))
    if freedom == 2:
        return level * float(np.sqrt(2 / (1 - level * level)))
    z = NormalDist().inv_cdf((1 + level) / 2)
    if freedom is None:
        return z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))


def probability_of_improvement(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float:
    """How often a seed of ours beats one of theirs, ties counting half: the mean over tasks."""
    x, y = matrix_of(ours), matrix_of(theirs)
    return float(_improvement(x[None], y[None])[0])


def improvement_interval(
    ours: npt.ArrayLike, theirs: npt.ArrayLike, *, repetitions: int = REPETITIONS
) -> Interval:
    """The probability of improvement with its stratified bootstrap interval; the two sides are drawn apart."""
    x, y = matrix_of(ours), matrix_of(theirs)
    rng = np.random.default_rng(0)
    drawn: list[Doubles] = []
    for count in batches(repetitions):
        left = np.take_along_axis(x[None], rng.integers(0, len(x), size=(count, *x.shape)), axis=1)
        right = np.take_along_axis(y[None], rng.integers(0, len(y), size=(count, *y.shape)), axis=1)
        drawn.append(_improvement(left, right))
    return percentile_interval(probability_of_improvement(x, y), np.concatenate(drawn), LEVEL)


def time_to_threshold(
    at: Sequence[float], scores: Sequence[float], threshold: float, held: int = 3, *, begin: bool = False
) -> Reached:
    """When scores had held the threshold for `held` readings: at the last of them, until which everything is paid, or
    at the first one with `begin`. Censored at the last score otherwise.
    """
    good = 0
    for position, score in enumerate(scores):
        good = good + 1 if score >= threshold else 0
        if good == held:
            return Reached(float(at[position - held + 1 if begin else position]), True)
    return Reached(float(at[-1]) if len(at) else 0.0, False)


def matrix_of(scores: npt.ArrayLike) -> Doubles:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.size:
        raise ValueError("scores are a vector of seeds, or seeds × tasks, and not empty")
    if not np.isfinite(array).all():
        raise ValueError("every score must be a finite number")
    return array


def batches(repetitions: int) -> list[int]:
    whole, rest = divmod(repetitions, _ONE_BATCH)
    return [_ONE_BATCH] * whole + [rest] * (rest > 0)


def interquartile_means(rows: Doubles) -> Doubles:
    """The interquartile mean of each row, and of each column of rows that have some."""
    cut = rows.shape[1] // 4
    ordered = np.sort(rows, axis=1)[:, cut : rows.shape[1] - cut]
    means: Doubles = ordered.mean(axis=1)
    return means


def _improvement(x: Doubles, y: Doubles) -> Doubles:
    """[draws, seeds, tasks] twice → how often x beats y, a draw."""
    difference = x[:, :, None, :] - y[:, None, :, :]
    wins: Doubles = ((difference > 0) + 0.5 * (difference == 0)).mean(axis=(1, 2, 3))
    return wins


def percentile_interval(value: float, drawn: Doubles, level: float) -> Interval:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
