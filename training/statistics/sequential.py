"""A sequential test of two settings that train with the same seeds. It may end early, and errs in at most 5 %.

Each seed gives one difference between the two settings. If the settings do not differ, a difference is as likely to
be positive as negative, so every assignment of signs to the differences is equally likely. The test compares their
sum with its distribution over those assignments, at a few looks that are fixed beforehand. The allowed chance of a
false answer is spent over the looks as Lan and DeMets (1983) describe, with their function of Pocock's kind, so that
it never exceeds the level in all. No distribution of returns is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, e, log
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.05
POWER = 0.8
FEWEST_PAIRS = 6
"""With fewer pairs even equal signs have a chance of more than 5 %."""
MOST_PAIRS = 50
_ALL_SIGNS_UP_TO = 12
_DRAWS = 8_191
_LOOKS_AFTER_FIRST = 6
_FOR_LOOKING_EARLY = 1.35


@dataclass(frozen=True)
class Answer:
    """The result of a test: `sign` is 1 if the differences are positive, -1 if negative, 0 without an answer.

    `pairs` is the number of pairs at the look that gave the answer, else at the last look.
    """

    sign: int
    pairs: int


def spent_by(share: float) -> float:
    """Return the chance of a false answer that may be spent by this share of all pairs."""
    return LEVEL * log(1 + (e - 1) * min(1.0, share))


def looks(most: int) -> tuple[int, ...]:
    """Return after how many pairs the test looks at them, `most` being the last look.

    The first look is the first that can give an answer. ValueError if there would be none.
    """
    if not FEWEST_PAIRS <= most <= MOST_PAIRS:
        raise ValueError(f"a test has {FEWEST_PAIRS} to {MOST_PAIRS} pairs; {most} were given")
    first = next(pairs for pairs in range(1, most + 1) if 2.0 ** (1 - pairs) <= spent_by(pairs / most))
    step = max(2, ceil((most - first) / _LOOKS_AFTER_FIRST))
    return (*range(first, most, step), most)


def next_look(pairs: int, most: int) -> int:
    """Return the number of pairs at the first look that needs more than `pairs`; `most` if there is none."""
    return next((look for look in looks(most) if look > pairs), most)


def compare_pairs(differences: npt.ArrayLike, most: int) -> Answer:
    """Return the answer that the first differences of at most `most` give, in the order of their seeds.

    The looks that these pairs have reached are repeated, so that the same pairs always give the same answer.
    """
    seen = np.asarray(differences, dtype=np.float64)
    if seen.ndim != 1 or not np.isfinite(seen).all():
        raise ValueError("differences are a vector of finite numbers")
    signs = _signs(most)
    alive = np.ones(len(signs), dtype=bool)
    last = 0
    for look in looks(most):
        if look > len(seen):
            break
        last = look
        sums = np.abs(signs[:, :look] @ seen[:look])
        allowed = int(spent_by(look / most) * len(signs) + 1e-9) - int((~alive).sum())
        beyond = alive & _largest(sums, alive, allowed)
        if beyond[0]:  # the first row has the signs that were seen
            return Answer(1 if seen[:look].sum() > 0 else -1, look)
        alive &= ~beyond
    return Answer(0, last)


def _largest(
    sums: npt.NDArray[np.float64], alive: npt.NDArray[np.bool_], allowed: int
) -> npt.NDArray[np.bool_]:
    """Return which are the largest among those alive: as many as allowed, and equals only together."""
    if allowed <= 0:
        return np.zeros_like(alive)
    tolerance = 1e-9 * (1 + float(sums.max(initial=0.0)))
    ordered = np.sort(sums[alive])[::-1]
    if len(ordered) <= allowed:
        return alive.copy()
    beyond: npt.NDArray[np.bool_] = sums > ordered[allowed] + tolerance
    return beyond


@lru_cache(8)
def _signs(most: int) -> npt.NDArray[np.float64]:
    """[assignments, pairs]: every assignment of signs, or of many pairs some by chance. The first is the one seen."""
    if most <= _ALL_SIGNS_UP_TO:
        numbers = np.arange(2**most)[:, None] >> np.arange(most)[None, :]
        return (1.0 - 2.0 * (numbers & 1)).astype(np.float64)
    drawn = np.random.default_rng(0).integers(0, 2, size=(_DRAWS, most))
    return np.vstack([np.ones(most), 1.0 - 2.0 * drawn])


def pairs_needed(effect: float) -> int:
    """Return how many pairs find a difference of `effect` standard deviations of a setting's return over seeds with a
    power of 80 %. ValueError if those are more than MOST_PAIRS.
    """
    normal = NormalDist()
    z = normal.inv_cdf(1 - LEVEL / 2)
    # The difference of two runs has twice the variance of one; the last term corrects small samples.
    pairs = 2 * ((z + normal.inv_cdf(POWER)) / effect) ** 2 + z**2 / 2
    needed = max(FEWEST_PAIRS, ceil(_FOR_LOOKING_EARLY * pairs))
    if needed > MOST_PAIRS:
        raise ValueError(f"a difference of {effect:g} standard deviations takes more than {MOST_PAIRS} pairs")
    return needed
