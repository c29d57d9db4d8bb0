"""The forecast of a running job against what it came to, on the simulated cloud, where rent is booked by the minute."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from tests.factories import make_job
from tests.training.specs import cartpole, descent
from webapp.comparing.predictions.predict import points_of
from webapp.job_states import Observed
from webapp.jobs.billing.burn_rate import Burn, burn_of
from webapp.jobs.charts.history import series_of
from webapp.jobs.charts.scalars import scalars_of
from webapp.jobs.charts.score_curves import curves_of
from webapp.jobs.models import Job, Round
from webapp.jobs.queries import header
from webapp.jobs.running.runner import run_job
from webapp.jobs.spec import JobSpec

pytestmark = pytest.mark.django_db(transaction=True)

RL = {
    "stop": {"env_steps": None, "target_return": None, "rounds": 24},
    "algorithm": {"kind": "ppo", "epochs": 2},
}
KINDS: dict[str, dict[str, Any]] = {
    "data": {"training": lambda: descent(stop={"rounds": 24})},
    "data, a function learns": {
        "training": lambda: descent(stop={"rounds": 24}),
        "platform": {"learner": "function"},
    },
    "synchronous": {"training": lambda: cartpole(**RL)},
    "pipelined": {"training": lambda: cartpole(**RL, loop={"kind": "pipelined"})},
    "asynchronous": {"training": lambda: cartpole(**RL, loop={"kind": "asynchronous"})},
    "containers": {"training": lambda: cartpole(**RL), "platform": {"profile": "aci-today"}},
}


def _ended(kind: str) -> Job:
    made = KINDS[kind]
    document = {
        "training": made["training"]().model_dump(mode="json"),
        "platform": {"kind": "simulated", "seed": 5, **made.get("platform", {})},
        "budget_usd": "5",
    }
    job = make_job(spec=JobSpec.model_validate(document))
    assert run_job(job.pk, owner="test", hand_over=threading.Event()) == 0
    ended = Job.objects.select_related("account").get(pk=job.pk)
    assert ended.observed == Observed.SUCCEEDED
    return ended


def _forecast_after(job: Job, round_no: int) -> Burn:
    """The forecast that the job had after this round."""
    then = Job.objects.select_related("account").get(pk=job.pk)
    spend = Round.objects.get(job=job, round_no=round_no).report["spend"]
    then.observed, then.round_no = Observed.RUNNING, round_no
    then.account.spent_picodollars, then.account.overrun_picodollars = spend["spent_picodollars"], 0
    burn = burn_of(then)
    assert burn is not None
    return burn


def _forecasts(job: Job) -> list[bool]:
    """Whether each of two forecasts has the outcome in its band. Neither is far off."""
    outcome = job.account.spent_picodollars + job.account.overrun_picodollars
    inside = []
    for share in (0.25, 0.5):
        burn = _forecast_after(job, round(job.round_no * share))
        assert burn.done is not None
        assert burn.done.costs == pytest.approx(outcome, rel=0.15)
        inside.append(abs(burn.done.costs - outcome) <= burn.done.margin)
    return inside


@pytest.mark.slow
def test_the_bands_of_running_jobs_of_all_kinds_hold() -> None:
    inside = [one for kind in KINDS for one in _forecasts(_ended(kind))]
    assert len(inside) == 12
    assert sum(inside) >= 8


def test_rent_that_is_not_booked_yet_counts_in_forecasts_and_charts() -> None:
    """A machine's slice is booked when it is over. Without it the calls are a small part of what the job costs."""
    job = _ended("data")
    _forecasts(job)
    outcome = job.account.spent_picodollars + job.account.overrun_picodollars
    assert outcome > Round.objects.get(job=job, round_no=job.round_no).report["spend"]["spent_picodollars"]
    drawn = series_of(job)["columns"]["spent_usd"]
    assert round(drawn[-1] * 10**12) == outcome
    assert Decimal(header(job)["spent_usd"]) * 10**12 == outcome
    # Before the last slice is booked, every page and file reads the same figure.
    drawn = pytest.approx(series_of(job)["columns"]["spent_usd"][-2], rel=1e-4)
    before_last = Round.objects.filter(job=job).order_by("-round_no")[1]
    assert before_last.report["spend"]["accrued_picodollars"] > 0
    assert dict(scalars_of(before_last.report, 0))["cost/spent_usd"] == drawn
    assert points_of(job)[-2].usd == drawn
    (curve,) = curves_of([job]).values()
    assert any(usd == drawn for usd in (curve.training or curve).usd)
