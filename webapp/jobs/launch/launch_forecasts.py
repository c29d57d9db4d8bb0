"""The forecast of each launch. The worker makes it from what was known at the launch and stores it with the
job."""

from __future__ import annotations

import logging
from datetime import timedelta

from cloud.billing.price_book import PICODOLLARS_PER_USD, PriceError
from cloud.forecast import NoForecast, first_round_picodollars
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.launch.forecast_panel import forecast_of
from webapp.jobs.launch.past_runs import apply_lessons, cost_key, lessons_of
from webapp.jobs.models import Job
from webapp.money.models import LaunchForecast

log = logging.getLogger(__name__)

_YOUNG = timedelta(minutes=10)
_without: set[str] = set()
"""Jobs that cannot be forecast; this process does not try them again."""


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
        found = apply_lessons(forecast_of(spec), lessons, float(spec.budget_usd))
        least = first_round_picodollars(spec.training, spec.platform)
    except (NoForecast, PriceError, ValueError) as error:
        log.info("no forecast of %s: %s", job.pk, error)
        return None
    if found.costs_nothing or found.rounds.p90 == 0:
        return None
    dollars, minutes = found.dollars, found.minutes
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
        },
    )
    return row
