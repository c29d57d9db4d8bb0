"""What people do to jobs, and the states it leads through."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction

from tests.factories import (
    FixedClock,
    make_job,
    make_project,
    make_running_job,
    make_spec,
    release_lease,
    stopped,
)
from tests.ledger_contract import reservation, settlement
from tests.webapp.spoiled_database import failing_at
from webapp.celery import app as celery_app
from webapp.clock import SYSTEM_CLOCK
from webapp.database.leases import LEASE_TTL
from webapp.job_states import SUCCESSORS, TERMINAL, IllegalTransition, Observed
from webapp.jobs.events.event_log import transition
from webapp.jobs.models import Event, Job
from webapp.jobs.reasons import StateChange
from webapp.jobs.running.leases import renew_lease, take_lease
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.services import (
    JobFinished,
    LimitTooLow,
    SpecRefused,
    lower_budget,
    raise_budget,
    stop_idle,
    stop_job,
    submit_job,
)
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account

pytestmark = pytest.mark.django_db


def test_a_submitted_job_is_queued_with_its_account_and_first_event(
    launched: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = make_job()
    assert (job.observed, job.desired, job.last_seq) == ("queued", "run", 1)
    assert job.account.limit_picodollars == 10**12
    assert job.events.get().payload["text"].endswith("budget of $1.00.")
    assert job.parsed_spec() == make_spec()
    assert launched == [job.pk]


def test_the_same_key_gives_the_same_job() -> None:
    project = make_project()
    first = make_job(project, idempotency_key="k")
    assert make_job(project, idempotency_key="k") == first
    assert make_job(make_project(), idempotency_key="k") != first
    assert Job.objects.filter(project=project).count() == 1


def test_more_actors_than_allowed_is_refused_and_nothing_is_made(settings: Any) -> None:
    settings.STARLING_MAX_LOCAL_ACTORS = 4
    with pytest.raises(SpecRefused, match=r"\(training.scaling.actors\) .*at most 4 .* 8 was"):
        make_job()
    assert not Job.objects.exists()


def test_a_broker_that_is_away_does_not_fail_a_request(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(celery_app, "send_task", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        job = make_job()
    assert job.observed == "queued"


def test_stopping_a_job_no_one_runs_ends_it_at_once() -> None:
    job = make_job()
    job = stop_job(job=job, user=job.created_by)
    assert (job.observed, job.reason_code) == ("cancelled", "cancelled")
    assert job.finished_at is not None


def test_stopping_a_running_job_drains_it() -> None:
    job, epoch = make_running_job()
    job = stop_job(job=job, user=job.created_by)
    assert (job.observed, job.desired) == ("draining", "cancelled")
    assert not stop_idle(job.pk, clock=SYSTEM_CLOCK)
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped("cancelled"))
    job.refresh_from_db()
    assert (job.observed, job.lease_owner) == ("cancelled", "")


def test_stopping_twice_or_too_late_changes_nothing() -> None:
    job = make_job()
    job = stop_job(job=job, user=job.created_by)
    again = stop_job(job=job, user=job.created_by)
    assert again.last_seq == job.last_seq


def test_raising_the_budget_resumes_a_job_that_it_stopped(
    launched: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    job, epoch = make_running_job()
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped("budget"))
    job.refresh_from_db()
    assert (job.observed, job.reason_code) == ("paused", "budget")
    with django_capture_on_commit_callbacks(execute=True):
        job = raise_budget(job=job, user=job.created_by, limit_usd=Decimal("2.50"))
    assert job.observed == "queued"
    assert job.account.limit_picodollars == 2_500_000_000_000
    assert launched[-1] == job.pk


def test_a_budget_can_only_be_raised() -> None:
    job = make_job()
    with pytest.raises(LimitTooLow, match=r"more than \$1.00"):
        raise_budget(job=job, user=job.created_by, limit_usd=Decimal("1"))


def test_a_budget_is_lowered_to_what_is_spent_or_reserved_and_no_further() -> None:
    job, epoch = make_running_job()
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([reservation("a", 2 * 10**11), reservation("b", 10**11)]) == [True, True]
    ledger.settle([settlement("a", 2 * 10**11 - 1)])
    before = job.last_seq
    with pytest.raises(LimitTooLow, match=r"\$0\.3,"):
        lower_budget(job=job, user=job.created_by, limit_usd=Decimal("0.29"))
    job = lower_budget(job=job, user=job.created_by, limit_usd=Decimal("0.3"))
    account = Account.objects.get(job=job)
    assert (account.limit_picodollars, account.granted_picodollars) == (3 * 10**11, 3 * 10**11)
    assert ledger.reserve([reservation("c", 2)]) == [False]
    said = job.events.get(seq=before + 1)
    assert said.payload["text"].startswith("Budget lowered to $0.300")


def test_budgets_above_get_back_what_a_lower_limit_does_not_need() -> None:
    job, epoch = make_running_job()
    budget = create_budget(project=job.project, name="Above", limit_picodollars=10**13)
    assert DatabaseLedger(job.account.pk, epoch).reserve([reservation("a", 2 * 10**11)]) == [True]
    assert Account.objects.get(job=job).granted_picodollars > 2 * 10**11
    lower_budget(job=job, user=job.created_by, limit_usd=Decimal("0.2"))
    budget.refresh_from_db()
    assert budget.reserved_picodollars == Account.objects.get(job=job).granted_picodollars == 2 * 10**11


@pytest.mark.parametrize("change", [raise_budget, lower_budget])
def test_the_budget_of_a_finished_job_stays(change: Any) -> None:
    job = make_job()
    stop_job(job=job, user=job.created_by)
    with pytest.raises(JobFinished):
        change(job=job, user=job.created_by, limit_usd=Decimal("5"))


@pytest.mark.parametrize("usd", ["1000000.01", "0", "-1"])
@pytest.mark.parametrize("change", [raise_budget, lower_budget])
def test_a_budget_becomes_no_amount_that_a_job_could_not_be_launched_with(change: Any, usd: str) -> None:
    job = make_job()
    before = job.account.limit_picodollars
    with pytest.raises(SpecRefused, match="budget_usd"):
        change(job=job, user=job.created_by, limit_usd=Decimal(usd))
    assert Account.objects.get(job=job).limit_picodollars == before


@pytest.mark.parametrize("before", list(Observed))
def test_states_change_along_the_graph_only(before: Observed) -> None:
    job = make_job()
    for after in Observed:
        Job.objects.filter(pk=job.pk).update(observed=before)
        if after in SUCCESSORS[before]:
            transition(job.pk, StateChange(after), clock=SYSTEM_CLOCK)
            assert Job.objects.get(pk=job.pk).observed == after
        else:
            with pytest.raises(IllegalTransition), transaction.atomic():
                transition(job.pk, StateChange(after), clock=SYSTEM_CLOCK)
            assert Job.objects.get(pk=job.pk).observed == before


def test_nothing_follows_the_end() -> None:
    assert all(not SUCCESSORS[state] for state in TERMINAL)


def test_one_holder_at_a_time_with_epochs_that_grow() -> None:
    clock = FixedClock()
    job = make_job(clock=clock)
    assert take_lease(job_id=job.pk, owner="a", clock=clock) == 1
    assert take_lease(job_id=job.pk, owner="b", clock=clock) is None
    clock.forward(LEASE_TTL.total_seconds() - 1)
    assert renew_lease(job_id=job.pk, epoch=1, clock=clock)
    clock.forward(LEASE_TTL.total_seconds() - 1)
    assert take_lease(job_id=job.pk, owner="b", clock=clock) is None
    clock.forward(1)
    assert take_lease(job_id=job.pk, owner="b", clock=clock) == 2
    assert not renew_lease(job_id=job.pk, epoch=1, clock=clock)
    assert release_lease(job_id=job.pk, epoch=2)
    assert take_lease(job_id=job.pk, owner="c", clock=clock) == 3


def test_no_lease_on_a_job_that_is_not_to_run() -> None:
    job = make_job()
    stop_job(job=job, user=job.created_by)
    assert take_lease(job_id=job.pk, owner="a") is None


def test_submitting_rolls_back_as_a_whole() -> None:
    project = make_project()
    with failing_at('INSERT INTO "money_account"', RuntimeError()), pytest.raises(RuntimeError):
        submit_job(project=project, user=project.people.get(), spec=make_spec())
    assert not Job.objects.exists()
    assert not Event.objects.exists()
