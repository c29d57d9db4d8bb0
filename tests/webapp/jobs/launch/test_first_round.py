"""Launched with exactly its least budget a job ends its first round; with one picodollar less it is refused.

Jobs, accounts, budgets, engine, meter and simulated cloud are real; what is learned is not (tests.cloud.unlearned).
"""

import threading
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of
from tests.cloud.test_first_round import CLOUDS, ROLLOUTS, fixed, launched
from tests.cloud.unlearned import Ended, really
from tests.factories import make_job, make_project, make_running_job, make_spec, release_lease, stopped
from tests.ledger_contract import reservation, settlement
from tests.work import repeated
from training.engine.ports import Room
from webapp.alerts import sources
from webapp.alerts.models import Alert
from webapp.alerts.text import end_sentence
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.invariants import findings
from webapp.jobs.launch.checklist import checklist
from webapp.jobs.launch.forecast_panel import headline
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.launch.launch_budget import least_of
from webapp.jobs.models import Job
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.runner import run_job
from webapp.jobs.services import SpecRefused
from webapp.jobs.spec import JobSpec
from webapp.money.budgets import create_budget
from webapp.money.invariants import money_findings
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account
from webapp.money.queries import OWN_BUDGET

USD = 10**12
MILLIONTH = 10**6
SMALL = {"rounds": 6, "env_steps": None}


def _small(**changes: Any) -> JobSpec:
    """CartPole with four actors for six rounds on the simulated cloud."""
    usual = {
        "training__environment": {"id": "CartPole-v1"},
        "training__scaling": fixed(4),
        "training__stop": SMALL,
        "platform__workers": 1,
    }
    return make_spec("hopper-simulated", **{**usual, **changes})


def _with(spec: JobSpec, picodollars: int) -> JobSpec:
    """With this own budget, which has six decimals at most."""
    return spec.model_copy(update={"budget_usd": Decimal(picodollars).scaleb(-12)})


def _least(spec: JobSpec) -> int:
    least = least_of(spec)
    assert isinstance(least, int)
    return least


def _trained(spec: JobSpec, ledger: DatabaseLedger) -> Ended:
    options = spec.platform
    assert isinstance(options, SimulatedOptions)
    scene = configuration_of(spec.training, options)
    return really(
        spec.training, options, scene.profile, scene.stack, episode_steps=lambda _: 50, ledger=ledger
    )


def _run(spec: JobSpec, project: Any) -> Ended:
    """What the job's run does in its account, until its end."""
    job, epoch = make_running_job(project=project, spec=spec, whole_budget=True)
    ended = _trained(spec, DatabaseLedger(job.account.pk, epoch))
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped(ended.reason_code, ended.rounds))
    return ended


def _budgets(project: Any, exact: str, limit: int) -> None:
    """One over all, one over the project: the `exact` one has just this limit, the other more."""
    for scope in ("everything", "project"):
        create_budget(
            project=project if scope == "project" else None,
            name=scope,
            limit_picodollars=limit if scope == exact else 3 * limit + USD,
            scope=scope,
        )


def _holds(spec: JobSpec, exact: str) -> None:
    """With exactly its least budget at one of the three levels, and with a picodollar less: its own in millionths."""
    step = MILLIONTH if exact == "own" else 1
    least = -(-_least(spec) // step) * step
    assume(launched(spec.training, spec.platform, USD * 1000).rounds)
    for amount in (least - step, least):
        with transaction.atomic():  # no other draw's jobs are below a budget over all
            _refused_or_over(spec, amount, exact, refused=amount < least)
            transaction.set_rollback(True)


def _refused_or_over(spec: JobSpec, amount: int, exact: str, *, refused: bool) -> None:
    """A job with this amount at that level, either refused before there is anything of it, or with its first round."""
    project = make_project()
    spec = _with(spec, amount if exact == "own" else 2 * -(-amount // MILLIONTH) * MILLIONTH)
    _budgets(project, exact, amount)
    if refused:
        with pytest.raises(SpecRefused, match=r"first round (may )?cost"):
            make_job(project, spec=spec, whole_budget=True)
        assert not Job.objects.filter(project=project).exists()
    else:
        assert _run(spec, project).rounds >= 1
    assert not list(money_findings())


FEW_CALLS: list[dict[str, Any]] = [
    {"kind": "synchronous"},
    {"kind": "pipelined"},
    {"kind": "asynchronous", "staleness_limit": 2},
]
"""Each call is a few writes to the database; tests.cloud.test_first_round draws more of them."""
SPECS = st.builds(
    lambda environment, actors, loop, rollout, platform: _small(
        training__environment={"id": environment},
        training__scaling=fixed(actors),
        training__loop=loop,
        training__rollout=rollout,
        training__stop={"rounds": 1, "env_steps": None},
        platform=platform.model_dump(),
    ),
    st.sampled_from(["CartPole-v1", "Pendulum-v1", "Hopper-v5"]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(FEW_CALLS),
    ROLLOUTS,
    CLOUDS,
)
LEVELS = st.sampled_from(["own", "project", "everything"])
UNHURRIED = list(HealthCheck)


@pytest.mark.django_db
@settings(max_examples=5, derandomize=True, suppress_health_check=UNHURRIED)
@given(SPECS, LEVELS)
def test_exactly_the_least_budget_is_enough_and_less_is_refused(spec: JobSpec, exact: str) -> None:
    _holds(spec, exact)


@repeated(60, endurance=200)
@pytest.mark.django_db
def test_exactly_the_least_budget_is_enough_for_many_jobs(times: int) -> None:
    often = settings(max_examples=times, derandomize=True, suppress_health_check=UNHURRIED)
    often(given(SPECS, LEVELS)(_holds))()


@pytest.mark.django_db
def test_check_list_forecast_and_launch_ask_for_the_same_amount() -> None:
    """Two cents are not enough for the learner's second minute, which falls due before the first round is over."""
    project = make_project()
    spec = _small(budget_usd="0.02")
    assert f"{_least(spec) / USD:.4f}" == "0.0294"
    [row] = [row for row in checklist(project, project.people.first(), spec) if row.title == "Budget"]
    assert row.tone == "failed"
    with pytest.raises(SpecRefused) as refusal:
        make_job(project, spec=spec)
    said = (row.words, str(refusal.value), headline(forecast_of(spec), spec))
    assert all("$0.0294" in words for words in said), said
    enough = _small(budget_usd="0.0294")
    assert make_job(project, spec=enough).observed == "queued"
    assert "Nothing would begin" not in headline(forecast_of(enough), enough)


@pytest.mark.django_db
def test_a_ledger_names_the_limit_that_leaves_least() -> None:
    project = make_project()
    job, epoch = make_running_job(project=project, spec=_small(budget_usd="1"))
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.room() == Room(USD, OWN_BUDGET)
    create_budget(project=project, name="Year", limit_picodollars=3 * USD)
    create_budget(project=project, name="March", limit_picodollars=USD // 2)
    assert ledger.room() == Room(USD // 2, "the budget “March”")
    ledger.reserve([reservation("a", USD // 5)])
    assert ledger.room() == Room(USD // 2 - USD // 5, "the budget “March”")
    assert ledger.room().picodollars == ledger.headroom()


@pytest.mark.django_db
def test_a_job_stopped_by_its_budget_names_it_and_claims_no_checkpoint_that_is_not_there() -> None:
    project = make_project()
    create_budget(project=project, name="March", limit_picodollars=USD)
    spec = _small(budget_usd="2")
    job, epoch = make_running_job(project=project, spec=spec)
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", USD - 10)])
    ended = _trained(spec, ledger)
    assert (ended.rounds, ended.reason_code) == (0, "budget")
    assert "budget “March”" in ended.reason
    last = stopped("budget", rounds=0).model_copy(update={"reason": ended.reason})
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(last)
    assert sources.raise_job_ends(clock=SYSTEM_CLOCK) == 1
    sentence = Alert.objects.get().sentence
    assert sentence == end_sentence(Job.objects.get(pk=job.pk))
    assert "with a checkpoint" not in sentence
    assert "budget “March”" in sentence
    assert Job.objects.get(pk=job.pk).has_checkpoint is False


def _ran(job: Job) -> Job:
    """As its worker runs it."""
    run_job(job.pk, owner="test", hand_over=threading.Event())
    job.refresh_from_db()
    return job


@pytest.mark.django_db(transaction=True)
def test_a_run_begins_with_its_least_budget_below_one_that_drains() -> None:
    project, spec = make_project(), _small(budget_usd="1")
    create_budget(project=project, name="March", limit_picodollars=_least(spec))
    job = _ran(make_job(project, spec=spec))
    assert job.round_no >= 1, job.reason
    assert findings(SYSTEM_CLOCK.now()) == []


@pytest.mark.django_db(transaction=True)
def test_a_run_that_finds_less_than_its_least_budget_ends_before_it_spends_anything() -> None:
    """An earlier run of the job was cut off when it had spent half of what it had."""
    project, spec = make_project(), _small(budget_usd="1")
    least = _least(spec)
    create_budget(project=project, name="March", limit_picodollars=least)
    job = make_job(project, spec=spec)
    epoch = take_lease(job_id=job.pk, owner="earlier")
    assert epoch is not None
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("earlier", least // 2)])
    ledger.settle([settlement("earlier", least // 2)])
    release_lease(job_id=job.pk, epoch=epoch)
    job = _ran(job)
    assert (job.observed, job.reason_code, job.round_no) == ("paused", "budget", 0)
    assert "budget “March”" in job.reason
    assert Account.objects.get(job=job).spent_picodollars == least // 2
    assert findings(SYSTEM_CLOCK.now()) == []
