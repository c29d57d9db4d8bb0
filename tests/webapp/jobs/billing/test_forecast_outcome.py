"""A job's forecast at launch beside what it came to, by the same parts."""

from __future__ import annotations

import os
import re
import threading

import pytest
from django.test import Client

from tests.factories import make_job, make_spec
from tests.webapp.jobs.billing.test_bills import SMALL, page_of, text
from webapp.formatting import display_usd
from webapp.jobs.billing import bills
from webapp.jobs.launch.forecasts import store_forecast
from webapp.jobs.models import Job
from webapp.jobs.running.runner import run_job
from webapp.money.models import LaunchForecast

pytestmark = pytest.mark.django_db(transaction=True)


def _finished(**changes: object) -> Job:
    """A job that has run, with its forecast and its bill."""
    job = make_job(spec=make_spec("hopper-simulated", **{**SMALL, "platform__seed": 7}, **changes))
    assert store_forecast(job) is not None
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    bills.draw_up_bill(job.pk)
    return Job.objects.select_related("account", "bill", "launch_forecast").get(pk=job.pk)


@pytest.mark.parametrize("profile", ["lambda", "aci-today", "one-machine"])
def test_forecast_and_outcome_divide_the_money_alike(profile: str) -> None:
    job = _finished(platform__profile=profile)
    forecast, outcome = job.launch_forecast.parts, job.bill.document["by_forecast_part"]
    assert sum(outcome.values()) == job.account.spent_picodollars
    assert sum(forecast.values()) == pytest.approx(job.launch_forecast.cost_p50_picodollars, rel=0.2)
    for part in forecast.keys() | outcome.keys():
        share = max(forecast.get(part, 0), outcome.get(part, 0)) / job.account.spent_picodollars
        if share > 0.1:
            assert 0.3 < outcome.get(part, 0) / forecast[part] < 3.0, part


def test_the_cost_tab_says_what_was_forecast_what_it_came_to_and_which_part_differs(client: Client) -> None:
    job = _finished()
    row = job.launch_forecast
    # As if updates had been forecast at a tenth of what they came to.
    total = job.bill.document["total"]
    paid = job.bill.document["by_forecast_part"]["learner"]
    row.parts["learner"] = paid // 10
    row.cost_p10_picodollars, row.cost_p50_picodollars = total // 3, total // 2
    row.cost_p90_picodollars = total * 2 // 3
    row.save()
    page = text(page_of(client, job))
    assert re.search(r"100 % more .*outside its range", page)
    assert "Part Forecast Outcome" in page
    assert f"Learner {display_usd(paid // 10)} {display_usd(paid)} +" in page


def test_a_job_whose_forecast_has_no_parts_shows_its_totals(client: Client) -> None:
    job = _finished()
    LaunchForecast.objects.update(parts={})
    page = page_of(client, job)
    assert 'class="bill-forecast"' in page.content.decode()
    assert "data-parts-not-stored" in page.content.decode()
    assert "Part Forecast Outcome" not in text(page)
