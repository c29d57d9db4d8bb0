"""What the forks of a branching study say: does curvature rank the rounds by what more actors bring there?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from research.reports.judging import Judgement, judge
from training.statistics import Interval, rank_correlation

_REPETITIONS = 2_000
Fork = tuple[float, list[float]]
"""R of a round, and the gain of each replicate."""


def forks_of(rows: Sequence[Mapping[str, Any]]) -> dict[int, Fork]:
    """By round, where R and both scores are known."""
    found: dict[int, Fork] = {}
    gains: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "fork" and None not in (row["ratio"], row["boosted"], row["plain"]):
            gains[row["round"]].append(row["boosted"] - row["plain"])
            found[row["round"]] = row["ratio"], gains[row["round"]]
    return found


def correlation(forks: Mapping[int, Fork]) -> float:
    """Of R and the mean gain, given the round."""
    rounds = sorted(forks)
    return rank_correlation(
        [forks[k][0] for k in rounds], [float(np.mean(forks[k][1])) for k in rounds], rounds
    )


def judge_forks(seeds: Sequence[Mapping[int, Fork]], repetitions: int = _REPETITIONS) -> Judgement:
    """The mean correlation over seeds; the interval draws seeds, then the replicates of each fork."""
    usable = [forks for forks in seeds if len(forks) >= 4]
    if not usable:
        return Judgement(None, 0, "", "open", "No seed has forks at four rounds or more.")
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(repetitions):
        picked = [usable[place] for place in rng.integers(0, len(usable), len(usable))]
        drawn.append(np.mean([correlation(_redrawn(forks, rng)) for forks in picked]))
    low, high = np.quantile(drawn, [0.025, 0.975])
    value = float(np.mean([correlation(forks) for forks in usable]))
    interval = Interval(value, float(low), float(high))
    word, why = judge(interval, 0.0, len(usable), less=True)
    return Judgement(interval, len(usable), "", word, why)


def _redrawn(forks: Mapping[int, Fork], rng: np.random.Generator) -> dict[int, Fork]:
    return {
        k: (ratio, [gains[place] for place in rng.integers(0, len(gains), len(gains))])
        for k, (ratio, gains) in forks.items()
    }
