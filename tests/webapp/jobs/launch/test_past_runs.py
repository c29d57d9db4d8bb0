"""Forecasts that past runs have taught, the forecast kept of each launch, and how right they were."""

from typing import Any

import pytest

from cloud.timing.forecast import Band
from tests.factories import FixedClock, make_job, make_project, make_spec
from tests.figures import figures_in
from webapp.jobs.launch.forecasts import (
    Lesson,
    calibration,
    calibration_sentence,
    cost_key,
    forecast_recent_job,
    lessons_of,
    store_forecast,
)
from webapp.jobs.models import Job
from webapp.money.models import Account, LaunchForecast

pytestmark = pytest.mark.django_db


def _spec(**changes: Any) -> Any:
    return make_spec("hopper-simulated", training__stop__env_steps=8192, **changes)


def _ran(project: Any, times: float, spec: Any = None) -> Job:
    """A job that came to so many times its forecast, in money and in time."""
    job = make_job(project, spec=spec or _spec())
    row = store_forecast(job)
    assert row is not None
    Account.objects.filter(job=job).update(spent_picodollars=round(row.cost_p50_picodollars * times))
    Job.objects.filter(pk=job.pk).update(
        observed="succeeded", platform_s=row.time_p50_s * times, finished_at=FixedClock().now()
    )
    return job


def test_the_kind_of_a_job_is_what_its_cost_depends_on() -> None:
    base = cost_key(_spec())
    assert cost_key(_spec(name="other", budget_usd="7", training__seed=9)) == base
    assert cost_key(make_spec("hopper-simulated", training__stop__env_steps=1)) == base
    assert cost_key(_spec(training__rollout__steps_per_call=64)) != base


def test_past_runs_move_the_middle_and_their_number_narrows_the_range() -> None:
    band = Band(50.0, 100.0, 200.0)
    assert Lesson(0).apply(band) == band
    few, many = Lesson(1, 1.5, 0.0).apply(band), Lesson(20, 1.5, 0.1).apply(band)
    assert few.p50 == many.p50 == 150.0
    assert many.p90 - many.p10 < few.p90 - few.p10 < 1.5 * 150.0
    assert many.p10 < 135.0 < 165.0 < many.p90


def test_a_launch_learns_from_the_runs_of_its_kind_in_its_project() -> None:
    project = make_project()
    first = LaunchForecast.objects.get(job=_ran(project, 2.0))
    for _ in range(3):
        _ran(project, 2.0 / lessons_of(project, _spec()).cost.factor)
    lessons = lessons_of(project, _spec())
    assert lessons.cost.runs == 4
    assert lessons.cost.factor == pytest.approx(2 ** (4 / 6), rel=0.01)
    last = store_forecast(make_job(project, spec=_spec()))
    assert last is not None
    assert last.cost_p50_picodollars == pytest.approx(
        first.cost_p50_picodollars * lessons.cost.factor, rel=0.01
    )
    assert (first.past_runs, last.past_runs) == (0, 4)
    assert lessons_of(make_project(), _spec()).cost.runs == 0


def test_the_worker_keeps_each_launchs_forecast_once() -> None:
    job = make_job(spec=_spec())
    free = make_job(job.project)
    for _ in range(4):
        forecast_recent_job()
    assert list(LaunchForecast.objects.values_list("job_id", flat=True)) == [job.pk]
    assert free.pk not in LaunchForecast.objects.values_list("job_id", flat=True)
    row = LaunchForecast.objects.get()
    assert 0 < row.cost_p10_picodollars < row.cost_p50_picodollars < row.cost_p90_picodollars


def test_calibration_is_reported_once_there_are_enough() -> None:
    project = make_project()
    for times in (1.0, 1.0, 1.0, 1.0):
        _ran(project, times)
    assert calibration_sentence(project) == ""
    _ran(project, 40.0)
    found = calibration(project)
    assert found is not None
    assert (found.forecasts, found.inside, found.time_inside) == (5, 0.8, 0.8)
    assert found.cost_error == pytest.approx(0.0, abs=0.01)
    assert figures_in(calibration_sentence(project))[:2] == ["5", "80"]
