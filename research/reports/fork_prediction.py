"""What the forks of a branching study say: does curvature rank the rounds by what more actors bring there?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from research.reports.judging import Judgement, judge
from research.statistics import rank_correlation, widened_interval
from training.statistics.few_seeds import Interval

_REPETITIONS = 2_000
Fork = tuple[float, list[float]]
"""R of a round, and the gain of each replicate."""


def forks_of(rows: Sequence[Mapping[str, Any]], *, later: bool = False) -> dict[int, Fork]:
    """By round, where R and both scores are known; `later`: the scores after the branches' further rounds."""
    boosted, plain = ("boosted_later", "plain_later") if later else ("boosted", "plain")
    forks: dict[int, Fork] = {}
    gains: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "fork" and None not in (row["ratio"], row[boosted], row[plain]):
            gains[row["round"]].append(row[boosted] - row[plain])
            forks[row["round"]] = row["ratio"], gains[row["round"]]
    return forks


def correlation(forks: Mapping[int, Fork]) -> float:
    """Of R and the mean gain, given the round."""
    rounds = sorted(forks)
    return rank_correlation(
        [forks[k][0] for k in rounds], [float(np.mean(forks[k][1])) for k in rounds], rounds
    )


def judge_forks(
    seeds: Sequence[Mapping[int, Fork]],
    repetitions: int = _REPETITIONS,
    *,
    r_reliability: float | None = None,
) -> Judgement:
    """The mean correlation over seeds; the interval draws seeds, then the replicates of each fork.

    Noise in gains and in R makes any correlation smaller: its interval without that is given as well.
    """
    usable = [forks for forks in seeds if len(forks) >= 4]
    if not usable:
        return Judgement(None, 0, "", "open", "No seed has forks at four rounds or more.")
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(repetitions):
        picked = [usable[place] for place in rng.integers(0, len(usable), len(usable))]
        drawn.append(float(np.mean([correlation(_redrawn(forks, rng)) for forks in picked])))
    value = float(np.mean([correlation(forks) for forks in usable]))
    interval = _within_one(widened_interval(value, drawn, len(usable)))
    word, why = judge(interval, 0.0, len(usable), less=True)
    gains = float(np.mean([gain_reliability(forks) for forks in usable]))
    more: dict[str, Any] = {"gain_reliability": gains, "r_reliability": r_reliability}
    power = f"The mean gain of a round's replicates has a reliability of {gains:.2f}"
    power += (
        ", and that of R is not known here and taken as 1"
        if r_reliability is None
        else f" and R one of {r_reliability:.2f}".replace("-", "−")
    )
    product = gains * (1.0 if r_reliability is None else r_reliability)
    freed = _within_one(Interval(*(one / math.sqrt(product) for one in interval))) if product > 0 else None
    if freed is not None:
        more["disattenuated"] = freed._asdict()
    if freed is None or (freed.low, freed.high) == (-1.0, 1.0):
        power += ": nothing can be said of the correlation without that noise."
    else:
        limits = f"{freed.low:.2f} to {freed.high:.2f}".replace("-", "−")
        power += f": without that noise the correlation is within {limits}."
    return Judgement(interval, len(usable), "", word, " ".join(filter(None, (why, power))), more=more)


def _within_one(interval: Interval) -> Interval:
    """No correlation is beyond 1."""
    return Interval(*(min(1.0, max(-1.0, bound)) for bound in interval))


def gain_reliability(forks: Mapping[int, Fork]) -> float:
    """The share of the variance of rounds' mean gains that is not chance of their replicates: 1 − within / between, by
    a one-way analysis of variance; 0 where there is no more between rounds than within.
    """
    groups = [np.array(gains) for _, gains in forks.values() if len(gains) > 1]
    if len(groups) < 2:
        return 0.0
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    within /= sum(len(group) - 1 for group in groups)
    grand = np.concatenate(groups).mean()
    between = sum(len(group) * float((group.mean() - grand) ** 2) for group in groups) / (len(groups) - 1)
    return max(0.0, 1.0 - within / between) if between > 0 else 0.0


def _redrawn(forks: Mapping[int, Fork], rng: np.random.Generator) -> dict[int, Fork]:
    return {
        k: (ratio, [gains[place] for place in rng.integers(0, len(gains), len(gains))])
        for k, (ratio, gains) in forks.items()
    }
