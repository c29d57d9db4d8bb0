"""The rules that tell spending gone wrong, and the facts they are given of a running job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.stored_rounds import store_rounds
from tests.factories import FixedClock, make_running_job, make_spec, round_finished
from tests.figures import figures_in
from webapp.alerts import anomalies
from webapp.alerts.anomalies import Facts
from webapp.alerts.models import Alert, AlertKind, AlertState
from webapp.jobs.launch import forecasts
from webapp.jobs.models import Event, EventKind, Job, Round
from webapp.money.budgets import create_budget
from webapp.money.models import Charge, ChargeState

USD = 10**12
WELL = Facts(name="Hopper", limit_picodollars=USD, cap_picodollars=USD, unreal=False)


# Rules


def _kinds(facts: Facts) -> set[str]:
    return {found.kind.value for found in anomalies.findings(facts)}


def test_a_job_that_does_as_forecast_is_left_alone() -> None:
    fine = replace(
        WELL, expected_picodollars_per_s=1e9, burn_picodollars_per_s=2.9e9, settled_calls=900, failed_calls=40
    )
    assert _kinds(WELL) == _kinds(fine) == set()


def test_an_alert_names_what_the_budgets_above_leave() -> None:
    fast = replace(
        WELL, expected_picodollars_per_s=1e8, burn_picodollars_per_s=9e8, cap_picodollars=USD // 25
    )
    (found,) = anomalies.findings(fast)
    assert figures_in(found.sentence)[-1] == "$0.0400"


@pytest.mark.django_db
def test_the_facts_of_a_job_count_the_budgets_above_it() -> None:
    job, _ = make_running_job()
    create_budget(project=job.project, name="Tiny", limit_picodollars=USD // 25)
    facts = anomalies.facts_of(Job.objects.get(pk=job.pk), NOW)
    assert (facts.limit_picodollars, facts.cap_picodollars) == (USD, USD // 25)


def test_burn_rings_above_three_times_and_stays_until_below_two() -> None:
    facts = replace(WELL, expected_picodollars_per_s=1e8, burn_picodollars_per_s=3.1e8)
    (found,) = anomalies.findings(facts)
    assert found.kind == AlertKind.BURN
    assert figures_in(found.sentence)[:3] == ["$1.12", "3.1", "$0.360"]
    near = replace(facts, burn_picodollars_per_s=2.5e8)
    assert _kinds(near) == set()
    assert _kinds(replace(near, open_kinds=frozenset({"burn"}))) == {"burn"}
    assert _kinds(replace(facts, burn_picodollars_per_s=1.9e8, open_kinds=frozenset({"burn"}))) == set()


def test_without_a_forecast_or_rounds_there_is_no_burn_to_judge() -> None:
    assert _kinds(replace(WELL, burn_picodollars_per_s=1e12)) == set()
    assert _kinds(replace(WELL, expected_picodollars_per_s=1.0)) == set()
    assert _kinds(replace(WELL, expected_picodollars_per_s=0.0, burn_picodollars_per_s=1e12)) == set()


@pytest.mark.parametrize(
    ("failed", "settled", "unreal", "rings"),
    [
        (19, 0, False, False),  # too few to tell
        (20, 20, False, True),  # every second one
        (40, 100, False, False),
        (200, 9_800, False, True),  # a small share, and many all the same: each is paid for
        (200, 9_800, True, False),  # simulated calls are many, and cost nothing
        (300, 100, True, True),
    ],
)
def test_a_storm_of_retries(failed: int, settled: int, unreal: bool, rings: bool) -> None:
    facts = replace(WELL, failed_calls=failed, settled_calls=settled, unreal=unreal)
    assert _kinds(facts) == ({"retries"} if rings else set())


def test_money_without_steps_rings_from_a_fiftieth_of_the_limit_on() -> None:
    assert _kinds(replace(WELL, spent_since_steps_picodollars=USD // 50 - 1)) == set()
    (found,) = anomalies.findings(replace(WELL, spent_since_steps_picodollars=USD // 50))
    assert found.severity == "critical"
    assert found.sentence.startswith("Hopper has spent $0.0200")


@given(
    expected=st.none() | st.floats(0, 1e15),
    burn=st.none() | st.floats(0, 1e15),
    failed=st.integers(0, 10**6),
    settled=st.integers(0, 10**6),
    spent=st.integers(0, 10**15),
    open_kinds=st.frozensets(st.sampled_from(sorted(kind.value for kind in anomalies.WATCHED))),
)
def test_whatever_the_facts_each_rule_speaks_once_and_what_rings_keeps_ringing(
    expected: float | None,
    burn: float | None,
    failed: int,
    settled: int,
    spent: int,
    open_kinds: frozenset[str],
) -> None:
    facts = Facts("Job", USD, USD, False, expected, burn, failed, settled, spent, open_kinds)
    kinds = [found.kind for found in anomalies.findings(facts)]
    assert len(kinds) == len(set(kinds)) <= 3
    assert set(kinds) <= _kinds(replace(facts, open_kinds=frozenset(kinds))), (
        "nothing rings on and off unchanged"
    )


# Facts


@pytest.fixture
def job(db: Any) -> Job:
    clock = FixedClock()
    running, _ = make_running_job(clock=clock, spec=make_spec("hopper-simulated", name="Hopper"))
    return Job.objects.select_related("account").get(pk=running.pk)


NOW = FixedClock().now() + timedelta(minutes=20)


def _rounds(job: Job, usd_a_second: float, seconds: int, every_s: int = 10) -> None:
    reports = []
    for number in range(1, seconds // every_s + 1):
        spent = round(usd_a_second * every_s * number * USD)
        report = round_finished(number, spent=spent).report.model_copy(
            update={"started_s": float(every_s * (number - 1)), "total_s": float(every_s)}
        )
        reports.append(report.model_dump(mode="json"))
    store_rounds(job, reports, NOW)
    Job.objects.filter(pk=job.pk).update(round_no=seconds // every_s)
    job.refresh_from_db()


def _charges(job: Job, count: int, usd: float, steps: int, at: Any = NOW) -> None:
    Charge.objects.bulk_create(
        Charge(
            account=job.account,
            epoch=1,
            name=f"call-{steps}-{number}",
            round_no=job.round_no + 1,
            kind="rollout",
            state=ChargeState.SETTLED,
            reserved_picodollars=round(usd * USD),
            settled_picodollars=round(usd * USD),
            usage={"env_steps": steps},
            opened_at=at,
            resolved_at=at,
        )
        for number in range(count)
    )


def test_burn_is_taken_over_five_minutes_of_the_platforms_time(job: Job) -> None:
    _rounds(job, 0.001, 290)
    assert anomalies.facts_of(job, NOW).burn_picodollars_per_s is None
    Round.objects.all().delete()
    _rounds(job, 0.001, 400)
    assert anomalies.facts_of(job, NOW).burn_picodollars_per_s == pytest.approx(0.001 * USD)


def test_what_spending_is_compared_with_is_the_forecast_that_its_user_saw(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made once, at launch: a forecast takes seconds of the worker's time, and every scan asks for this number."""
    assert anomalies.expected_rate(job) is None
    row = forecasts.store_forecast(job)
    assert row is not None
    type(row).objects.filter(pk=row.pk).update(cost_p50_picodollars=7 * row.cost_p50_picodollars)
    row.refresh_from_db()
    assert anomalies.expected_rate(job) == pytest.approx(row.cost_p50_picodollars / row.time_p50_s)
    assert 1e-7 * USD < row.cost_p50_picodollars / row.time_p50_s < 1e-1 * USD


def test_spending_without_steps_is_seen_and_a_single_step_ends_it(job: Job) -> None:
    _charges(job, 30, 0.001, 0)
    assert anomalies.facts_of(job, NOW).spent_since_steps_picodollars == pytest.approx(0.03 * USD)
    early = FixedClock().now() + timedelta(minutes=5)
    assert anomalies.facts_of(job, early).spent_since_steps_picodollars == 0, "it has only begun"
    _charges(job, 1, 0.001, 256)
    assert anomalies.facts_of(job, NOW).spent_since_steps_picodollars == 0


def test_what_is_wrong_is_raised_once_and_over_when_it_is_right_again(job: Job) -> None:
    clock = FixedClock(NOW)
    first = job.last_seq + 1
    Event.objects.bulk_create(
        Event(job=job, seq=first + number, at=NOW, kind=EventKind.CALL_FAILED) for number in range(50)
    )
    Job.objects.filter(pk=job.pk).update(last_seq=first + 49)
    assert anomalies.scan_jobs(clock=clock) == 1
    assert anomalies.scan_jobs(clock=clock) == 1
    alert = Alert.objects.get()
    assert (alert.kind, alert.raise_count, alert.severity) == ("retries", 2, "critical")
    assert alert.sentence.startswith("50 calls of Hopper")
    assert "100 % of all" in alert.sentence
    clock.forward(301)
    assert anomalies.scan_jobs(clock=clock) == 0
    alert.refresh_from_db()
    assert (alert.state, alert.over_words) == (AlertState.RESOLVED, anomalies.OVER[AlertKind.RETRIES])
    # And one of a job that runs no more.
    clock.moment = NOW
    anomalies.scan_jobs(clock=clock)
    Job.objects.filter(pk=job.pk).update(observed="cancelled")
    anomalies.scan_jobs(clock=clock)
    assert not Alert.objects.exclude(state=AlertState.RESOLVED).exists()
    assert Alert.objects.latest("pk").over_words == anomalies.ENDED
