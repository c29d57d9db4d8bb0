"""What if: predicted from a job's rounds, applied by its own ways, kept, judged, and shown."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_project, make_running_job, make_spec, make_user, round_finished
from tests.figures import figures_in
from tests.members import add_member
from tests.signed_in import signed_in
from training.engine.ports import PriceLine, Reservation, Settlement
from webapp.comparing.predictions import services, text
from webapp.comparing.predictions.drawing import _tick, charts
from webapp.comparing.predictions.models import Prediction, PredictionState
from webapp.comparing.predictions.predict import NoPrediction, predict
from webapp.comparing.predictions.services import apply, judge_ended
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account

pytestmark = pytest.mark.django_db
CENT = 10**10


def _running(project: Any = None, rounds: int = 12, **changes: Any) -> Job:
    """A job of 256 steps, 1 s and a cent a round, that ends after 40 rounds."""
    given = {
        "platform": {"kind": "simulated", "learner": "function"},
        "training__stop": {"env_steps": 40 * 256},
        "training__scaling__actors": 2,
        "training__evaluation": {"every_rounds": 40, "episodes": 1},
        "budget_usd": "1",
        **changes,
    }
    job, epoch = make_running_job(project=project, spec=make_spec(**given))
    recorder, ledger = Recorder(job.pk, epoch, keep_checkpoints=3), DatabaseLedger(job.account.pk, epoch)
    lines = (PriceLine("lambda.request", "1", "request", CENT),)
    for round_no in range(1, rounds + 1):
        assert ledger.reserve([Reservation(f"r{round_no}", "rollout", round_no, CENT)]) == [True]
        ledger.settle([Settlement(f"r{round_no}", CENT, "metered", lines, {})])
        event = round_finished(round_no, mean=10.0 * round_no, spent=CENT * round_no)
        recorder.record(event.model_copy(update={"report": event.report.model_copy(update={"actors": 2})}))
    recorder.flush()
    return Job.objects.select_related("account").get(pk=job.pk)


def _ends(job: Job, state: str = "succeeded", cents: int = 40, time_s: float = 40.0, **facts: Any) -> None:
    """The job ends after this time, having cost so much."""
    more = CENT * cents - Account.objects.get(job=job).spent_picodollars
    ledger = DatabaseLedger(job.account.pk, job.lease_epoch)
    lines = (PriceLine("lambda.request", "1", "request", more),)
    assert ledger.reserve([Reservation("rest", "rollout", 13, more)]) == [True]
    ledger.settle([Settlement("rest", more, "metered", lines, {})])
    Job.objects.filter(pk=job.pk).update(observed=state, platform_s=time_s, **facts)


def test_a_job_is_predicted_from_its_own_rounds() -> None:
    found = predict(_running(), actors=None)
    assert found.end.ends_by == "steps"
    # 28 more rounds, and an evaluation at the end that is taken for another round.
    assert found.end.time_s.p50 == pytest.approx(41, rel=0.02)
    assert found.end.usd.p50 == pytest.approx(0.40, rel=0.01)
    assert found.score is not None
    assert found.score.p10 < found.score.p50 < found.score.p90


def test_its_charts_have_round_figures_on_their_axes() -> None:
    job = _running()
    score, spent = charts(job, predict(job, actors=None))
    for chart in (score, spent):
        heights = [height for height, _ in chart.ticks]
        assert 3 <= len(heights) <= 9
        assert heights == sorted(heights, reverse=True)
    assert spent.ticks[0][1] == "$0"
    assert spent.first == "0 s"


def test_ticks_are_written_with_the_decimals_they_have() -> None:
    values = (0.0, 0.1 + 0.2, -0.25, -1_200.0, 12_502.5, 1e5)
    assert [_tick(value) for value in values] == ["0", "0.3", "−0.25", "−1,200", "12,502.5", "100,000"]


def test_many_rounds_take_as_many_queries_as_few(django_assert_num_queries: Any) -> None:
    for rounds in (8, 36):
        job = _running(rounds=rounds)
        with django_assert_num_queries(2):
            predict(job, actors=None)


def test_a_limit_that_is_met_before_ends_the_job_and_a_higher_one_does_not() -> None:
    job = _running(budget_usd="0.3")
    low, high = predict(job, actors=None), predict(job, actors=None, limit_picodollars=10**12)
    assert low.end.ends_by == "budget"
    assert low.end.usd.p90 <= 0.3
    assert high.end.ends_by == "steps"
    assert high.end.time_s.p50 > low.end.time_s.p50


def test_more_actors_end_a_job_sooner_and_the_forecast_says_by_how_much() -> None:
    job = _running()
    now, more = predict(job, actors=None), predict(job, actors=8)
    assert more.end.time_s.p50 < now.end.time_s.p50
    assert more.end.steps.p50 >= 40 * 256


def test_what_cannot_be_predicted_says_why() -> None:
    with pytest.raises(NoPrediction, match="6 rounds; 5 "):
        predict(_running(rounds=5), actors=None)
    job = _running()
    _ends(job)
    job.refresh_from_db()
    with pytest.raises(NoPrediction, match="Only a job"):
        predict(job, actors=None)


def test_applying_goes_by_the_jobs_own_ways_and_keeps_the_prediction() -> None:
    job = _running()
    row = apply(job=job, user=job.created_by, actors=4, limit_picodollars=2 * 10**12)
    job.refresh_from_db()
    assert (job.actors_least, job.actors_most) == (4, 4)
    assert Account.objects.get(job=job).limit_picodollars == 2 * 10**12
    assert (row.round_no, row.actors, row.limit_picodollars, row.state) == (
        12,
        4,
        2 * 10**12,
        PredictionState.OPEN,
    )
    said = text.kept(row, job.declaration)
    assert figures_in(said)[:2] == ["12", "4"]
    again = apply(job=job, user=job.created_by, actors=6)
    row.refresh_from_db()
    assert (row.state, again.state) == (PredictionState.VOID, PredictionState.OPEN)
    assert "A later prediction" in text.kept(row, job.declaration)


def test_a_lower_limit_is_predicted_applied_and_refused_below_what_is_spent() -> None:
    job = _running()
    low = predict(job, actors=None, limit_picodollars=25 * CENT)
    assert (low.end.ends_by, low.end.usd.p90 <= 0.25) == ("budget", True)
    with pytest.raises(NoPrediction, match=r"cannot be below \$0\.12, which is spent"):
        predict(job, actors=None, limit_picodollars=12 * CENT - 1)
    row = apply(job=job, user=job.created_by, actors=None, limit_picodollars=25 * CENT)
    assert Account.objects.get(job=job).limit_picodollars == row.limit_picodollars == 25 * CENT
    with pytest.raises(NoPrediction):
        apply(job=job, user=job.created_by, actors=None, limit_picodollars=CENT)
    assert Account.objects.get(job=job).limit_picodollars == 25 * CENT


@pytest.mark.parametrize("limit", ["1", "0.37", "1.2345", "31"])
def test_the_slider_can_stand_at_the_limit_and_goes_down_to_what_is_spent(limit: str) -> None:
    job = _running(budget_usd=limit)
    page = signed_in(job.created_by).get(reverse("predictions:what_if", args=[job.project.slug, job.pk]))
    least, step, now = (Decimal(page.context[name]) for name in ("limit_least", "limit_step", "chosen_limit"))
    assert now == Decimal(limit)
    assert (now - least) % step == 0
    assert Decimal("0.12") <= least < Decimal("0.12") + step


def test_at_the_end_a_prediction_is_judged_in_a_sentence() -> None:
    job = _running()
    row = apply(job=job, user=job.created_by, actors=None)
    judge_ended()
    row.refresh_from_db()
    assert row.state == PredictionState.OPEN, "the job still runs"
    _ends(job, cents=90)
    judge_ended()
    row.refresh_from_db()
    assert row.state == PredictionState.JUDGED
    time, cost, score = text.outcomes(row, "return", 1)
    assert time == ("time", "40.0 s", True)
    assert cost == ("cost", "$0.900", False)
    assert score == ("return", f"{row.score:.1f}", row.score_p10 <= row.score <= row.score_p90)


@pytest.mark.parametrize("what", ["bounds", "limit", "stopped"])
def test_a_job_that_was_changed_otherwise_is_not_judged(what: str) -> None:
    job = _running()
    row = apply(job=job, user=job.created_by, actors=None)
    if what == "limit":
        Account.objects.filter(job=job).update(limit_picodollars=3 * 10**12)
    bounds = {"actors_least": 3, "actors_most": 3} if what == "bounds" else {}
    _ends(job, "cancelled" if what == "stopped" else "succeeded", **bounds)
    judge_ended()
    row.refresh_from_db()
    assert row.state == PredictionState.VOID
    assert row.reason
    assert "Not judged: " in text.kept(row, job.declaration)


def test_a_job_that_its_budget_stopped_as_predicted_is_judged() -> None:
    job = _running(budget_usd="0.3")
    row = apply(job=job, user=job.created_by, actors=None)
    _ends(job, "paused", cents=29, time_s=29.0, reason_code="budget")
    judge_ended()
    row.refresh_from_db()
    assert row.state == PredictionState.JUDGED


def test_the_page_predicts_and_applies_and_the_jobs_page_shows_what_was_predicted() -> None:
    user = make_user(password="correct horse battery")
    project = make_project(user)
    job = _running(project)
    client = signed_in(user)
    address = reverse("predictions:what_if", args=[project.slug, job.pk])
    page = client.get(address).content.decode()
    assert "its last step" in page
    assert 'type="range"' in page
    part = client.get(f"{address}predicted?actors=2&limit_usd=2").content.decode()
    assert "Limit $2.00" in part
    lower = client.get(f"{address}predicted?limit_usd=0.2").content.decode()
    assert "Limit $0.200" in lower
    assert "limit is reached" in lower
    refused = client.get(f"{address}predicted?limit_usd=0.119").content.decode()
    assert "cannot be below $0.12," in refused
    answer = client.post(f"{address}apply/", {"actors": "2", "limit_usd": "2"})
    assert answer["Location"] == reverse("jobs:detail", args=[project.slug, job.pk])
    row = Prediction.objects.get(job=job)
    assert row.limit_picodollars == 2 * 10**12
    page = client.get(answer["Location"]).content.decode()
    assert "Predicted after round 12" in page
    assert "data-predicted=" in page
    mark = services.latest(job)
    assert json.loads(json.dumps(text.mark(mark)))["round"] == 12


def test_a_higher_limit_wants_a_fresh_sign_in_and_an_editor() -> None:
    user = make_user(password="correct horse battery")
    project = make_project(user)
    job = _running(project)
    address = reverse("predictions:apply", args=[project.slug, job.pk])
    stale = Client()
    stale.force_login(user)
    assert "reauthenticate" in stale.post(address, {"limit_usd": "2"})["Location"]
    viewer = make_user()
    add_member(project, viewer.email, "viewer")
    assert signed_in(viewer).post(address, {"actors": "4"}).status_code == 403
    assert signed_in(viewer).post(address, {"limit_usd": "0.5"}).status_code == 403
    assert signed_in(make_user()).post(address, {"actors": "4"}).status_code == 404
    assert not Prediction.objects.exists()
    assert Account.objects.get(job=job).limit_picodollars == int(Decimal("1") * 10**12)


def test_refusals_of_the_jobs_own_ways_change_nothing() -> None:
    user = make_user(password="correct horse battery")
    project = make_project(user)
    job = _running(project)
    answer = signed_in(user).post(
        reverse("predictions:apply", args=[project.slug, job.pk]), {"actors": "100000"}, follow=True
    )
    assert "Nothing was changed." in answer.content.decode()
    assert not Prediction.objects.exists()
