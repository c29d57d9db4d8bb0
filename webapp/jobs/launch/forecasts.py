"""Forecasts of jobs, corrected by past runs: the ratio between their actual and forecast cost and time.

The more past runs there are, the less the profile's own range counts. The worker stores the forecast of each
launch, made from what was known then; finished jobs show how accurate the forecasts were.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from statistics import fmean, median, pstdev
from typing import Any

from django.db.models import QuerySet

from cloud.money.billing.price_book import PICODOLLARS_PER_USD, PriceError, UnknownSku
from cloud.timing.forecast import Band, Forecast, NoForecast, first_round_picodollars, forecast
from cloud.timing.forecasting.result import TENTH
from training.data.store import MissingData
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import plural
from webapp.job_states import Observed
from webapp.jobs.launch.preflight import scheduler_obstacle
from webapp.jobs.launch.project_choices import data_sets
from webapp.jobs.models import Job
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import picodollars
from webapp.money.models import LaunchForecast

log = logging.getLogger(__name__)

_KEPT = 128
RUNS_LOOKED_AT = 20
FORECASTS_LOOKED_AT = 40
FORECASTS_AT_LEAST = 5
_RUNS_THAT_WEIGH_HALF = 2
_NOT_OF_THE_KIND = ("seed", "stop", "checkpoints")
_YOUNG = timedelta(minutes=10)
_without: set[str] = set()
"""Jobs that cannot be forecast; this process does not try them again."""


def forecast_of(spec: JobSpec) -> Forecast:
    """Return the forecast. NoForecast, with a sentence or two for users, if there is none."""
    return _forecast(spec.model_dump_json(exclude={"name"}))


@lru_cache(_KEPT)
def _forecast(document: str) -> Forecast:
    spec = JobSpec.model_validate_json(document)
    if missing := scheduler_obstacle(spec.training):
        raise NoForecast(missing.sentence)
    try:
        return forecast(spec.training, spec.platform, picodollars(spec.budget_usd))
    except (UnknownSku, PriceError) as error:
        raise NoForecast(f"Without a price there is no forecast: {error}.") from None
    except MissingData as missing:
        raise NoForecast(str(missing)) from None


def learned_forecast(project: Project, spec: JobSpec) -> Forecast:
    """Return the forecast corrected by the project's past runs. Raises NoForecast."""
    if missing := data_sets().obstacles(project, spec):
        raise NoForecast(missing[0].sentence)
    return apply_lessons(forecast_of(spec), lessons_of(project, spec), float(spec.budget_usd))


@dataclass(frozen=True)
class Lesson:
    """The result of `runs` past runs: their ratio to the forecast, and its standard deviation (of logarithms)."""

    runs: int
    factor: float = 1.0
    scatter: float = 0.0

    def apply(self, band: Band) -> Band:
        """Return the band scaled to past runs; its width combines their scatter and the remaining uncertainty."""
        if not self.runs or band.p50 <= 0:
            return band
        weight = self.runs / (self.runs + _RUNS_THAT_WEIGH_HALF)
        p50 = band.p50 * self.factor
        widths = []
        for end in (band.p10, band.p90):
            own = math.log(max(end, 1e-12) / band.p50) / TENTH
            widths.append(math.sqrt((1 - weight) * own**2 + weight * self.scatter**2 * (1 + 1 / self.runs)))
        return Band(p50 * math.exp(-TENTH * widths[0]), p50, p50 * math.exp(TENTH * widths[1]))


@dataclass(frozen=True)
class Lessons:
    cost: Lesson
    time: Lesson


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


def lessons_of(project: Project, spec: JobSpec) -> Lessons:
    """Return the lessons of the project's successful runs of this kind."""
    costs, times = [], []
    for row in _of_finished_jobs(job__project=project, alike=cost_key(spec))[:RUNS_LOOKED_AT]:
        if (paid := _paid(row)) and row.job.platform_s:
            costs.append(math.log(paid / row.cost_p50_picodollars * row.cost_factor))
            times.append(math.log(row.job.platform_s / row.time_p50_s * row.time_factor))
    return Lessons(_lesson(costs), _lesson(times))


def _of_finished_jobs(**wanted: Any) -> QuerySet[LaunchForecast]:
    """Return the forecasts of jobs that ran to their own end, the last finished first."""
    rows = LaunchForecast.objects.filter(
        job__observed=Observed.SUCCEEDED, cost_p50_picodollars__gt=0, **wanted
    )
    return rows.select_related("job__account").order_by("-job__finished_at")


def _paid(row: LaunchForecast) -> int:
    return row.job.account.spent_picodollars + row.job.account.overrun_picodollars


def _lesson(logs: list[float]) -> Lesson:
    if not logs:
        return Lesson(0)
    weight = len(logs) / (len(logs) + _RUNS_THAT_WEIGH_HALF)
    return Lesson(len(logs), math.exp(weight * fmean(logs)), pstdev(logs))


def apply_lessons(forecast: Forecast, lessons: Lessons, budget_usd: float) -> Forecast:
    """Return the forecast corrected by past runs; unchanged if there are none."""
    runs = lessons.cost.runs
    if not runs:
        return forecast
    dollars, whole = lessons.cost.apply(forecast.dollars), lessons.cost.apply(forecast.whole_dollars)
    capped = Band(*(min(quantile, budget_usd) for quantile in (dollars.p10, dollars.p50, dollars.p90)))
    assumption = f"Learned from {plural(runs, 'past run')} of the same kind in this project."
    return replace(
        forecast,
        dollars=capped,
        whole_dollars=whole,
        minutes=lessons.time.apply(forecast.minutes),
        assumptions=(*forecast.assumptions, assumption),
    )


def forecast_recent_job(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Forecast one recent job without a forecast. It takes a second; the next tick takes the next job."""
    young = Job.objects.filter(launch_forecast=None, created_at__gte=clock.now() - _YOUNG)
    job = young.exclude(pk__in=_without).order_by("created_at").first()
    if job is not None and store_forecast(job, clock=clock) is None:
        _without.add(job.pk)


def store_forecast(job: Job, *, clock: Clock = SYSTEM_CLOCK) -> LaunchForecast | None:
    """Store the job's forecast and return it; None if there is none or the job costs nothing."""
    try:
        spec = job.parsed_spec()
        lessons = lessons_of(job.project, spec)
        forecast = apply_lessons(forecast_of(spec), lessons, float(spec.budget_usd))
        least = first_round_picodollars(spec.training, spec.platform)
    except (NoForecast, PriceError, ValueError) as error:
        log.info("no forecast of %s: %s", job.pk, error)
        return None
    if forecast.costs_nothing or forecast.rounds.p90 == 0:
        return None
    dollars, minutes = forecast.dollars, forecast.minutes
    row, _ = LaunchForecast.objects.get_or_create(
        job=job,
        defaults={
            "at": clock.now(),
            "alike": cost_key(spec),
            "past_runs": lessons.cost.runs,
            "cost_factor": lessons.cost.factor,
            "time_factor": lessons.time.factor,
            "cost_p10_picodollars": round(dollars.p10 * PICODOLLARS_PER_USD),
            "cost_p50_picodollars": round(dollars.p50 * PICODOLLARS_PER_USD),
            "cost_p90_picodollars": round(dollars.p90 * PICODOLLARS_PER_USD),
            "time_p10_s": minutes.p10 * 60,
            "time_p50_s": minutes.p50 * 60,
            "time_p90_s": minutes.p90 * 60,
            "first_round_picodollars": least,
            "parts": {
                part: round(band.p50 * lessons.cost.factor * PICODOLLARS_PER_USD)
                for part, band in forecast.parts.items()
                if band.p50 > 0
            },
        },
    )
    return row


@dataclass(frozen=True)
class ForecastCalibration:
    """How many of `forecasts` costs and times were `inside` p10 to p90; errors are median shares of the p50."""

    forecasts: int
    inside: float
    time_inside: float
    cost_error: float
    time_error: float


def calibration(
    project: Project | None = None, last: int = FORECASTS_LOOKED_AT
) -> ForecastCalibration | None:
    """Return the calibration of the last jobs (of a project) that ended by themselves; None if there are too few."""
    rows = _of_finished_jobs(**({} if project is None else {"job__project": project}))[:last]
    timed = [row for row in rows if row.job.platform_s > 0]
    if len(timed) < FORECASTS_AT_LEAST:
        return None
    pairs = [(row, _paid(row)) for row in timed]
    return ForecastCalibration(
        forecasts=len(timed),
        inside=sum(row.cost_p10_picodollars <= paid <= row.cost_p90_picodollars for row, paid in pairs)
        / len(timed),
        time_inside=sum(row.time_p10_s <= row.job.platform_s <= row.time_p90_s for row in timed) / len(timed),
        cost_error=median(abs(paid / row.cost_p50_picodollars - 1) for row, paid in pairs),
        time_error=median(abs(row.job.platform_s / row.time_p50_s - 1) for row in timed),
    )


def calibration_sentence(project: Project | None = None) -> str:
    """Return the calibration as a sentence; empty if there are too few jobs."""
    figures = calibration(project)
    if figures is None:
        return ""
    return (
        f"Of the last {figures.forecasts} forecasts of costs {100 * figures.inside:.0f} % were inside their range"
        f" (80 % are meant to be), off by {100 * figures.cost_error:.0f} % in the middle."
    )
