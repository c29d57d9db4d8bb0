"""Whether two sets of seeds differ, or how many more would tell: few seeds are not given more weight than they have.

The test is by permutation, so that it holds for any distribution: with three seeds a side nothing is ever told apart,
with four the smallest p is 0.029.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb

import numpy as np

from webapp.papers.statistics import Doubles, Interval, improvement_interval

LEVEL = 0.05
FEWEST = 4
"""Seeds a side below which no difference, however large, passes the test."""
MOST_MORE = 50
_TWO_SIDED_Z = 1.96
_POWER_Z = 0.84
_EXACT_UP_TO = 20_000
_DRAWS = 10_000
_INTERVAL_DRAWS = 4_000


@dataclass(frozen=True)
class Apart:
    """What is known of two sides. `better` is how likely a run of the first beats one of the second.

    `more`: seeds that each side needs in addition before the difference seen so far would be told apart with 80 %
    probability; 0 if it is already, None if that would take more than MOST_MORE.
    """

    better: Interval
    p: float
    told: bool
    more: int | None


def apart(ours: Doubles, theirs: Doubles) -> Apart:
    """Compare the scores of two sides' seeds; neither may be empty."""
    better = improvement_interval(ours, theirs, repetitions=_INTERVAL_DRAWS)
    p = permutation_p(ours, theirs)
    if p <= LEVEL:
        return Apart(better, p, True, 0)
    return Apart(better, p, False, _more(ours, theirs))


def permutation_p(ours: Doubles, theirs: Doubles, seed: int = 0) -> float:
    """How often a difference of means this large or larger comes about when seeds are dealt to the sides by chance."""
    both = np.concatenate([ours, theirs])
    seen = abs(ours.mean() - theirs.mean())
    total, first = both.sum(), len(ours)
    if comb(len(both), first) <= _EXACT_UP_TO:
        sums = np.array([both[list(chosen)].sum() for chosen in combinations(range(len(both)), first)])
        found = abs(sums / first - (total - sums) / len(theirs)) >= seen - 1e-12 * (1 + abs(seen))
        return float(found.mean())
    rng = np.random.default_rng(seed)
    dealt = rng.random((_DRAWS, len(both))).argsort(axis=1)[:, :first]
    sums = both[dealt].sum(axis=1)
    found = abs(sums / first - (total - sums) / len(theirs)) >= seen - 1e-12 * (1 + abs(seen))
    return float((found.sum() + 1) / (_DRAWS + 1))


def _more(ours: Doubles, theirs: Doubles) -> int | None:
    fewest = min(len(ours), len(theirs))
    if fewest < 2:  # of one run's chance nothing is known: four a side are where telling begins
        return FEWEST - fewest
    difference = abs(float(ours.mean() - theirs.mean()))
    spread = (float(ours.var(ddof=1)) + float(theirs.var(ddof=1))) / 2
    if difference == 0:
        return None
    needed = seeds_needed(difference, spread**0.5)
    more = max(1, needed - fewest) if fewest >= FEWEST else max(FEWEST, needed) - fewest
    return more if more <= MOST_MORE else None


def seeds_needed(difference: float, spread: float) -> int:
    """Seeds a side that tell such a difference apart at 5 % with a power of 80 %; the last term: samples are small."""
    ratio = (spread / difference) ** 2
    return ceil(2 * (_TWO_SIDED_Z + _POWER_Z) ** 2 * ratio + _TWO_SIDED_Z**2 / 4)
