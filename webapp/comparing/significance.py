"""Whether two sets of seeds differ, or how many more seeds would show it.

The test is by permutation, so that it holds for any distribution. With three seeds a side no difference
is ever significant; with four the smallest p is 0.029.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from math import ceil, comb

import numpy as np
import numpy.typing as npt

from training.statistics.few_seeds import Doubles, Interval, improvement_interval

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
    """The test of two sides: a run of the first beats one of the second in `won` of all `pairs`, ties half.

    `better`: that share with its interval; None where seeds are too few, or too alike, to have one. `more`: seeds that
    each side needs in addition before the difference seen so far would be significant with 80 % probability; 0 if it is
    already, None if that would take more than MOST_MORE.
    """

    won: float
    pairs: int
    better: Interval | None
    p: float
    is_significant: bool
    more: int | None


def apart(ours: Doubles, theirs: Doubles) -> Apart:
    """Compare the scores of two sides' seeds; neither may be empty."""
    difference = ours[:, None] - theirs[None, :]
    won = float((difference > 0).sum() + 0.5 * (difference == 0).sum())
    better = None
    if min(len(ours), len(theirs)) >= FEWEST:
        better = with_width(improvement_interval(ours, theirs, repetitions=_INTERVAL_DRAWS))
    p = permutation_p(ours, theirs)
    more = 0 if p <= LEVEL else _more(ours, theirs)
    return Apart(won, difference.size, better, p, p <= LEVEL, more)


def with_width(interval: Interval) -> Interval | None:
    """The interval; None for one without width, as equal runs do not make a result certain."""
    return interval if interval.low < interval.high else None


def is_significantly_greater(ours: Doubles, theirs: Doubles) -> bool:
    """Whether the first are significantly greater; False for fewer than FEWEST of either."""
    if min(len(ours), len(theirs)) < FEWEST or ours.mean() <= theirs.mean():
        return False
    return permutation_p(ours, theirs) <= LEVEL


def permutation_p(ours: Doubles, theirs: Doubles) -> float:
    """The p-value: how often random assignment of seeds to sides gives a difference of means at least this large."""
    both = np.concatenate([ours, theirs])
    seen = abs(ours.mean() - theirs.mean())
    total, first = both.sum(), len(ours)
    deals = _deals(len(both), first)
    sums = both[deals].sum(axis=1)
    as_far = abs(sums / first - (total - sums) / len(theirs)) >= seen - 1e-12 * (1 + abs(seen))
    if _is_exact(len(both), first):
        return float(as_far.mean())
    return float((as_far.sum() + 1) / (len(deals) + 1))


def _is_exact(seeds: int, first: int) -> bool:
    return comb(seeds, first) <= _EXACT_UP_TO


@lru_cache(32)
def _deals(seeds: int, first: int) -> npt.NDArray[np.intp]:
    """[deals, first] → which seeds go to the first side: every way to deal, or of too many _DRAWS by chance."""
    if _is_exact(seeds, first):
        every = chain.from_iterable(combinations(range(seeds), first))
        return np.fromiter(every, dtype=np.intp).reshape(-1, first)
    drawn = np.random.default_rng(0).random((_DRAWS, seeds))
    # A copy, so that the full array of draws is freed.
    return drawn.argsort(axis=1)[:, :first].copy()


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
    """Seeds a side that detect such a difference at 5 % with a power of 80 %; the last term corrects small samples."""
    ratio = (spread / difference) ** 2
    return ceil(2 * (_TWO_SIDED_Z + _POWER_Z) ** 2 * ratio + _TWO_SIDED_Z**2 / 4)
