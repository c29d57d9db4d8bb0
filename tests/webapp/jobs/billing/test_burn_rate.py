"""What a running job is heading for: its rate, when it meets its limit or is done, and who is told of it once."""

import re
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from tests.factories import FixedClock, evaluated, make_job, make_running_job, make_spec, round_finished
from tests.figures import figures_in
from tests.webapp.jobs.billing.spending_jobs import NOON, endless_spec, running_job
from webapp.formatting import format_rough_duration
from webapp.jobs.billing.burn_rate import (
    PACE_MAY_CHANGE,
    Burn,
    BurnPace,
    JobEnd,
    announce_expected_limits,
    burn_of,
    forecast_spending,
    meets_at,
    outlooks_of,
)
from webapp.jobs.list.run_table import find_jobs, order_of
from webapp.jobs.models import Job
from webapp.jobs.queries import header, job_list
from webapp.jobs.running.recorder import Recorder
from webapp.money.budgets import change_budget, create_budget
from webapp.money.models import Budget, Crossing
from webapp.money.services import raise_limit
from webapp.overview.running_jobs import running

USD = 10**12


@pytest.mark.django_db
def test_the_limit_is_met_at_the_rate_of_the_last_rounds() -> None:
    job = running_job(10, USD // 1000, spec=endless_spec())
    burn = burn_of(job)
    assert burn is not None
    assert burn.hourly == 36 * USD // 10
    assert burn.limit_in_s == pytest.approx(990)
    assert not burn.ends_before(burn.limit_in_s)
    assert figures_in(forecast_spending(job, NOON)["burn"]) == ["$3.60", "12:16", "20"]


@pytest.mark.django_db
def test_a_scaling_policy_may_change_the_pace_which_is_said() -> None:
    ramp = {"kind": "ramp", "actors_first": 1, "actors_last": 4, "over_rounds": 40}
    sentence = forecast_spending(
        running_job(10, USD // 1000, spec=endless_spec(training__scaling=ramp)), NOON
    )["burn"]
    assert figures_in(sentence) == ["$3.60", "12:16", "20"]
    assert sentence.endswith(PACE_MAY_CHANGE)
    steady = forecast_spending(running_job(10, USD // 1000, spec=endless_spec()), NOON)["burn"]
    assert PACE_MAY_CHANGE not in steady


@pytest.mark.django_db
def test_after_a_change_of_actors_the_pace_is_that_of_the_rounds_since() -> None:
    job, epoch = make_running_job(clock=FixedClock(), spec=endless_spec())
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, clock=FixedClock())
    spent, hourly = 0, dict[int, float]()
    for round_no in range(1, 17):
        actors = 1 if round_no <= 10 else 4
        spent += actors * USD // 1000
        recorder.record(round_finished(round_no, spent=spent, actors=actors))
        burn = burn_of(Job.objects.select_related("account").get(pk=job.pk))
        hourly[round_no] = burn.hourly / USD if burn else 0.0
    assert (hourly[10], hourly[14], hourly[16]) == pytest.approx((3.6, 14.4, 14.4))
    assert 3.6 < hourly[12] < 14.4, "two rounds show no pace"


@pytest.mark.django_db
def test_rent_that_is_booked_by_the_minute_makes_no_bursts() -> None:
    """Rounds of a second, and a cent at the end of each minute: 60 cents an hour, whenever one looks."""
    job, epoch = make_running_job(clock=FixedClock(), spec=endless_spec())
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, clock=FixedClock())
    rates = []
    for round_no in range(1, 1001):
        recorder.record(round_finished(round_no, spent=round_no // 60 * USD // 100))
        if round_no > 500 and round_no % 50 == 11:
            burn = burn_of(Job.objects.select_related("account").get(pk=job.pk))
            assert burn is not None
            rates.append(burn.hourly / USD)
    assert rates == pytest.approx([0.6] * len(rates), rel=0.25)


@pytest.mark.django_db
def test_a_job_that_is_done_before_says_so() -> None:
    job = running_job(
        10, USD // 1000, spec=make_spec(training__stop={"env_steps": 256 * 110, "rounds": None})
    )
    assert figures_in(forecast_spending(job, NOON)["burn"]) == ["$3.60", "12:01", "$0.110", "$0.00420"]


@pytest.mark.django_db
@pytest.mark.parametrize("each", [USD // 1000, 0])
def test_the_overview_says_the_same_of_a_jobs_end_even_if_it_spends_nothing(each: int) -> None:
    job = running_job(10, each, spec=make_spec(training__stop={"rounds": 70, "env_steps": None}))
    done = outlooks_of([job])[job.pk].done
    assert done is not None
    assert done.in_s == pytest.approx(60)
    (row,) = running(job.project)
    assert row.left == format_rough_duration(done.in_s)


@pytest.mark.django_db
def test_a_chart_marks_where_the_band_meets_which_line_and_when() -> None:
    owner_limit = header(running_job(10, USD // 1000, spec=endless_spec()))["ahead"]
    assert owner_limit == {
        "hourly_usd": 3.6,
        "doubt": 0.02,
        "line_usd": pytest.approx(1.0),
        "done_in_s": pytest.approx(999_990),
        "words": owner_limit["words"],
        "end": "reached",
        "when": owner_limit["when"],
    }
    assert re.fullmatch(r".* limit at [\d:]{5} UTC( on .*)? \(± 20 s\)", owner_limit["words"])
    assert re.fullmatch(r"(\d+ \w+ )?[\d:]{5} UTC \(± 20 s\)", owner_limit["when"])
    done = header(
        running_job(10, USD // 1000, spec=make_spec(training__stop={"rounds": 60, "env_steps": None}))
    )
    assert done["ahead"]["words"].startswith("done at ")
    assert done["ahead"]["end"] == "done"
    assert done["ahead"]["done_in_s"] == pytest.approx(50)
    assert header(make_job())["ahead"] is None, "nothing is known yet"


@pytest.mark.django_db
def test_simulated_time_is_not_the_time_of_day() -> None:
    stop = {"env_steps": None, "rounds": 10**6}
    job = running_job(10, USD // 1000, spec=make_spec("hopper-simulated", training__stop=stop))
    sentence = forecast_spending(job, NOON)["burn"]
    assert figures_in(sentence) == ["$3.60", "16", "20"]
    assert "simulated hour" in sentence
    assert "UTC" not in sentence


@pytest.mark.django_db
def test_a_budget_above_that_is_met_sooner_is_the_one_that_is_named() -> None:
    job = running_job(10, USD // 1000, spec=endless_spec())
    create_budget(project=job.project, name="Wide", limit_picodollars=50 * USD)
    assert "its limit at 12:16 UTC" in forecast_spending(job, NOON)["burn"]
    create_budget(project=job.project, name="Narrow", limit_picodollars=USD // 10)
    job.account.refresh_from_db()
    sentence = forecast_spending(job, NOON)["burn"]
    assert "“Narrow” at 12:01 UTC" in sentence
    assert figures_in(sentence) == ["$3.60", "12:01", "1.8"]


@pytest.mark.django_db
def test_the_band_is_as_wide_as_the_rate_is_uneven() -> None:
    even, uneven = (
        burn_of(running_job(40, USD // 1000, spec=endless_spec(), uneven=part)) for part in (0, USD // 2000)
    )
    assert even is not None
    assert uneven is not None
    assert even.rate.doubt(1000) == 0.02 < uneven.rate.doubt(1000) < 0.5
    assert uneven.rate.doubt(10) > 2 * uneven.rate.doubt(1000), (
        "what comes next may be the dear or the cheap part"
    )


@pytest.mark.django_db
def test_nothing_is_said_of_too_few_rounds_or_of_what_costs_nothing() -> None:
    for rounds, each in ((3, 10), (10, 0)):
        job = running_job(rounds, each)
        assert burn_of(job) is None
        assert header(job)["burn"] == ""


@pytest.mark.django_db
def test_a_limit_that_is_expected_to_be_met_is_reported_once_and_again_after_it_was_raised() -> None:
    clock = FixedClock()
    job = running_job(10, USD // 1000, spec=endless_spec(), clock=clock)
    budget = create_budget(project=job.project, name="b", limit_picodollars=USD // 10, clock=clock)
    quiet = running_job(10, USD // 1000, spec=make_spec(training__stop={"env_steps": 3000, "rounds": None}))
    for _ in range(2):
        announce_expected_limits(clock=clock)
    rows = Crossing.objects.filter(kind="forecast")
    assert rows.filter(account=job.account).count() == 1
    assert not rows.filter(account=quiet.account).exists()
    (forecast,) = rows.filter(budget=budget)
    assert forecast.threshold == 100
    assert forecast.expected_at == clock.now() + timedelta(seconds=90)
    change_budget(budget=budget, limit_picodollars=USD // 5, clock=clock)
    raise_limit(job_id=job.pk, limit_usd=Decimal(2), clock=clock)
    announce_expected_limits(clock=clock)
    assert rows.filter(budget=budget).count() == 2
    assert rows.filter(account=job.account).count() == 2


def test_a_budget_is_met_by_jobs_one_after_the_other_ends() -> None:
    def job(rate: int, done_in_s: float | None) -> Burn:
        done = None if done_in_s is None else JobEnd(done_in_s, 0.0, 0, 0)
        return Burn(rate=BurnPace(rate), spent=0, limit_in_s=10**6, done=done)

    total = Budget(limit_picodollars=1000, period="total")
    assert meets_at([job(10, 50), job(5, None)], 100, total, NOON) == NOON + timedelta(seconds=80)
    assert meets_at([job(10, 50)], 100, total, NOON) is None
    assert meets_at([], 100, total, NOON) is None
    monthly = Budget(limit_picodollars=10**9, period="monthly")
    assert meets_at([job(10, None)], 0, monthly, NOON) is None


@pytest.mark.django_db
def test_what_the_reference_return_had_cost() -> None:
    job = running_job(4, USD // 1000)
    epoch = job.lease_epoch
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    recorder.record(evaluated(2, 100.0))
    recorder.record(evaluated(3, 480.0))
    recorder.record(evaluated(4, 490.0))
    job.refresh_from_db()
    assert figures_in(header(job)["reached"]) == ["475", "3", "3.0", "$0.00300"]


@pytest.mark.django_db
def test_the_list_can_be_sorted_by_cost_and_by_return() -> None:
    cheap = running_job(2, 10)
    dear = running_job(2, 1000, project=cheap.project)
    never = make_job(cheap.project)
    listed = partial(find_jobs, cheap.project, (), now=NOON)
    assert [job.pk for job in listed("-spent")] == [dear.pk, cheap.pk, never.pk]
    assert listed("-return").last() == never
    assert listed(order_of("nonsense")).first() == job_list(cheap.project).first()
