"""The result of a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


class NoForecast(ValueError):
    """No sensible forecast is possible; the message says why in a sentence or two, for people."""


TENTH = 1.2816
"""So many standard deviations from the mean lies a tenth of a normal distribution."""


@dataclass(frozen=True)
class Band:
    """A tenth of the draws is below `p10`, half below `p50`, a tenth above `p90`."""

    p10: float
    p50: float
    p90: float

    @staticmethod
    def of(values: Sequence[float]) -> Band:
        """Return the band of draws that lie in the middle of equal parts of all chances: each counts for its part."""
        return Band(*(float(one) for one in np.quantile(np.array(values), (0.1, 0.5, 0.9), method="hazen")))


@dataclass(frozen=True)
class Matter:
    """An influential number, and the job's minutes and dollars at the two ends of its range."""

    title: str
    minutes: tuple[float, float]
    dollars: tuple[float, float]


@dataclass(frozen=True)
class Forecast:
    """`dollars` never exceed the budget; `whole_dollars` is what the job would cost without one.

    `kept_back` dollars of a budget cannot be spent, because the worst case of calls in flight must remain; with a
    budget below `least_budget` nothing would begin.
    """

    minutes: Band
    dollars: Band
    whole_dollars: Band
    parts: Mapping[str, Band]
    steps: Band
    rounds: Band
    calls: Band
    cold_starts: Band
    ends_by: str
    budget_share: float
    kept_back: float
    least_budget: float
    costs_nothing: bool
    simulated: bool
    assumptions: tuple[str, ...]
    matters: tuple[Matter, ...]
