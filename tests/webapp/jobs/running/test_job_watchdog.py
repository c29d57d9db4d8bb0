"""The regular look at all jobs: what lost messages and dead processes left behind is brought on."""

from typing import Any

import pytest

from tests.factories import FixedClock, make_job, make_running_job
from webapp.celery import app
from webapp.database.leases import LEASE_TTL
from webapp.jobs.models import Job
from webapp.jobs.running.recovery import ASK_AGAIN_AFTER, check_jobs
from webapp.jobs.services import stop_job
from webapp.money.models import Charge
from webapp.money.services import settle_leftovers

pytestmark = pytest.mark.django_db


def test_a_lost_launch_message_is_sent_again(launched: list[str]) -> None:
    clock = FixedClock()
    job = make_job(clock=clock)
    check_jobs(clock=clock)
    assert launched == []  # the first message may still be on its way
    clock.forward(ASK_AGAIN_AFTER.total_seconds())
    check_jobs(clock=clock)
    assert launched == [job.pk]


def test_a_deserted_job_recovers_and_is_started_in_the_same_look(launched: list[str]) -> None:
    clock = FixedClock()
    job, _ = make_running_job(clock=clock)
    clock.forward(LEASE_TTL.total_seconds() - 1)
    check_jobs(clock=clock)
    job.refresh_from_db()
    assert (job.observed, launched) == ("running", [])
    clock.forward(1)
    for _ in range(2):
        check_jobs(clock=clock)
    job.refresh_from_db()
    assert (job.observed, job.reason_code, job.lease_owner) == ("recovering", "lost", "")
    assert (job.crashes, job.losses) == (0, 1)
    assert launched == [job.pk]


def test_a_deserted_job_that_is_to_stop_is_stopped_and_paid(launched: list[str], ledger_of: Any) -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    ledger_of(job, epoch, clock)
    stop_job(job=job, user=job.created_by, clock=clock)
    check_jobs(clock=clock)
    job.refresh_from_db()
    assert job.observed == "draining"
    clock.forward(LEASE_TTL.total_seconds())
    check_jobs(clock=clock)
    job.refresh_from_db()
    account = job.account
    assert (job.observed, launched) == ("cancelled", [])
    assert (account.spent_picodollars, account.reserved_picodollars) == (10**9, 0)
    assert settle_leftovers(job_id=job.pk, before_epoch=epoch + 9, clock=clock) == 0  # booked once


@pytest.fixture
def ledger_of() -> Any:
    from training.engine.ports import Reservation
    from webapp.money.ledger import DatabaseLedger

    def with_an_open_call(job: Job, epoch: int, clock: FixedClock) -> None:
        DatabaseLedger(job.account.pk, epoch, clock=clock).reserve([Reservation("a", "rollout", 1, 10**9)])
        assert Charge.objects.filter(account=job.account).count() == 1

    return with_an_open_call


def test_a_fresh_worker_looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its predecessor may have died long ago, and the next tick is seconds away."""
    from celery.signals import worker_ready

    sent: list[str] = []
    monkeypatch.setattr("webapp.jobs.tasks.tick.delay", lambda: sent.append("tick"))
    worker_ready.send(sender=app)
    assert sent == ["tick"]
