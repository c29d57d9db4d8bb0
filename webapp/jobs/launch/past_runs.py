"""Forecasts corrected by past runs: the ratio between their actual and forecast cost and time.

The more past runs there are, the less the profile's own range counts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, pstdev
from typing import Any

from cloud.forecast import Band, Forecast
from webapp.formatting import plural
from webapp.job_states import Observed
from webapp.jobs.spec import JobSpec
from webapp.money.models import LaunchForecast

RUNS_LOOKED_AT = 20
_RUNS_THAT_WEIGH_HALF = 2
_TENTH = 1.2816
_NOT_OF_THE_KIND = ("seed", "stop", "checkpoints")


@dataclass(frozen=True)
class Lesson:
    """The result of `runs` past runs: their ratio to the forecast, and its standard deviation (of
    logarithms)."""

    runs: int
    factor: float = 1.0
    scatter: float = 0.0

    def apply(self, band: Band) -> Band:
        """Return the band scaled to past runs, with a width that combines their scatter and the remaining
        uncertainty."""
        if not self.runs or band.p50 <= 0:
            return band
        weight = self.runs / (self.runs + _RUNS_THAT_WEIGH_HALF)
        p50 = band.p50 * self.factor
        widths = []
        for end in (band.p10, band.p90):
            own = log(max(end, 1e-12) / band.p50) / _TENTH
            widths.append(sqrt((1 - weight) * own**2 + weight * self.scatter**2 * (1 + 1 / self.runs)))
        return Band(p50 * exp(-_TENTH * widths[0]), p50, p50 * exp(_TENTH * widths[1]))


@dataclass(frozen=True)
class Lessons:
    cost: Lesson
    time: Lesson


NONE = Lessons(Lesson(0), Lesson(0))


def cost_key(spec: JobSpec) -> str:
    """Return a key of everything that the job's cost per step depends on."""
    training = {
        name: value
        for name, value in spec.training.model_dump(mode="json").items()
        if name not in _NOT_OF_THE_KIND
    }
    platform = {
        name: value for name, value in spec.platform.model_dump(mode="json").items() if name != "seed"
    }
    document = json.dumps([training, platform], sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()[:32]


def lessons_of(project: Any, spec: JobSpec) -> Lessons:
    """Return the lessons of the project's successful runs of this kind."""
    rows = LaunchForecast.objects.filter(
        job__project=project,
        alike=cost_key(spec),
        job__observed=Observed.SUCCEEDED,
        cost_p50_picodollars__gt=0,
    )
    rows = rows.select_related("job__account").order_by("-job__finished_at")[:RUNS_LOOKED_AT]
    costs, times = [], []
    for row in rows:
        paid = row.job.account.spent_picodollars + row.job.account.overrun_picodollars
        if paid and row.job.platform_s:
            costs.append(log(paid / row.cost_p50_picodollars * row.cost_factor))
            times.append(log(row.job.platform_s / row.time_p50_s * row.time_factor))
    return Lessons(_lesson(costs), _lesson(times))


def _lesson(logs: list[float]) -> Lesson:
    if not logs:
        return Lesson(0)
    weight = len(logs) / (len(logs) + _RUNS_THAT_WEIGH_HALF)
    return Lesson(len(logs), exp(weight * fmean(logs)), pstdev(logs))


def apply_lessons(found: Forecast, lessons: Lessons, budget_usd: float) -> Forecast:
    """Return the forecast corrected by past runs; unchanged if there are none."""
    runs = lessons.cost.runs
    if not runs:
        return found
    dollars, whole = lessons.cost.apply(found.dollars), lessons.cost.apply(found.whole_dollars)
    capped = Band(*(min(one, budget_usd) for one in (dollars.p10, dollars.p50, dollars.p90)))
    assumption = f"Learned from {plural(runs, 'past run')} of the same kind in this project."
    return replace(
        found,
        dollars=capped,
        whole_dollars=whole,
        minutes=lessons.time.apply(found.minutes),
        assumptions=(*found.assumptions, assumption),
    )
