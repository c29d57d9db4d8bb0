"""Leases on a busy machine and on several machines: who keeps one, who loses it, and what that is called."""

import os
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta

import pytest
from django.db import OperationalError, transaction

from rig.servers import ROOT
from tests.factories import FixedClock, checkpoint_saved, make_job, make_running_job
from webapp.clock import SystemClock
from webapp.database import leases
from webapp.database.leases import LEASE_TTL, Heartbeat, find_liveness, new_owner
from webapp.jobs import tasks
from webapp.jobs.models import Job
from webapp.jobs.reasons import Reason, fail_after_retries
from webapp.jobs.running import recovery
from webapp.jobs.running.leases import renew_lease, take_lease
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import CRASHES_ALLOWED, LOSSES_ALLOWED, check_jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("launched")]

STARVED_S = 60.0


def _owner_of_a_dead_process() -> str:
    set_up = "import django; django.setup()"
    program = f"{set_up}; from webapp.database.leases import new_owner; print(new_owner())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_a_lease_survives_a_minute_in_which_its_holder_gets_no_time() -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock)
    clock.forward(STARVED_S)
    check_jobs(clock=clock)
    job.refresh_from_db()
    assert (job.observed, job.crashes) == ("running", 0)
    assert take_lease(job_id=job.pk, owner="another", clock=clock) is None
    assert renew_lease(job_id=job.pk, epoch=epoch, clock=clock)


def test_a_lease_that_ran_out_is_its_holders_until_someone_takes_it() -> None:
    clock = FixedClock()
    job = make_job(clock=clock)
    assert take_lease(job_id=job.pk, owner="first", clock=clock) == 1
    clock.forward(2 * LEASE_TTL.total_seconds())
    assert renew_lease(job_id=job.pk, epoch=1, clock=clock)
    assert take_lease(job_id=job.pk, owner="second", clock=clock) is None
    clock.forward(2 * LEASE_TTL.total_seconds())
    assert take_lease(job_id=job.pk, owner="second", clock=clock) == 2
    assert not renew_lease(job_id=job.pk, epoch=1, clock=clock)


class _Heart:
    """A heart whose renewals a test answers, and what it took for its reason to end the process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: list[bool | Exception]) -> None:
        self.ended: list[int] = []
        self.beaten = threading.Event()
        self._answers = answers
        monkeypatch.setattr(leases, "RENEW_EVERY", timedelta(seconds=0.001))
        monkeypatch.setattr(leases, "_RETRY_S", 0.001)
        monkeypatch.setattr(os, "_exit", self.ended.append)

    def renew(self) -> bool:
        if not self._answers:
            # Only now is everything done that follows from the last answer.
            self.beaten.set()
            return True
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def beat(self) -> list[int]:
        with Heartbeat("job", self.renew):
            assert self.beaten.wait(60)
        return self.ended


@pytest.mark.django_db(transaction=True)
def test_a_late_renewal_ends_nothing_while_no_one_else_has_taken_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, jumps = time.monotonic, iter(range(0, 10**9, 3600))
    heart = _Heart(monkeypatch, [OperationalError("database is locked"), True, True])
    # An hour passes between any two looks at the clock: this process gets no time.
    monkeypatch.setattr(time, "monotonic", lambda: real() + next(jumps))
    assert heart.beat() == []


@pytest.mark.django_db(transaction=True)
def test_a_run_ends_once_someone_else_has_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _Heart(monkeypatch, [True, False]).beat() == [leases.LEASE_LOST_EXIT]


@pytest.mark.django_db(transaction=True)
def test_a_renewal_that_the_database_refused_is_soon_tried_again() -> None:
    def refused() -> bool:
        raise OperationalError("database is locked")

    assert Heartbeat("job", lambda: True)._renewed()
    assert not Heartbeat("job", refused)._renewed()
    assert leases.RENEW_EVERY.total_seconds() > leases._RETRY_S


def test_a_run_does_not_begin_inside_a_transaction_that_hides_its_lease() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="outside of transactions"):
        Heartbeat(make_job().pk, lambda: True).__enter__()


class _AnHourAhead(SystemClock):
    """A machine whose own clock is wrong."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


def test_a_machine_whose_clock_is_wrong_takes_no_lease_that_is_held(launched: list[str]) -> None:
    job, _ = make_running_job()
    assert take_lease(job_id=job.pk, owner="another", clock=_AnHourAhead()) is None
    check_jobs(clock=_AnHourAhead())
    job.refresh_from_db()
    assert (job.observed, launched) == ("running", [])


def test_it_is_known_which_holders_are_dead() -> None:
    assert find_liveness(new_owner()) == "alive"
    assert find_liveness(_owner_of_a_dead_process()) == "gone"
    assert find_liveness("doomed") == find_liveness("") == "unknown"
    assert find_liveness("another-machine" + new_owner()) == "unknown"


def test_the_jobs_of_a_dead_worker_go_on_at_once_and_that_is_no_crash(launched: list[str]) -> None:
    job = make_job()
    assert take_lease(job_id=job.pk, owner=_owner_of_a_dead_process())
    Job.objects.filter(pk=job.pk).update(observed="running")
    check_jobs()
    job.refresh_from_db()
    assert (job.observed, job.reason_code, job.crashes, job.losses) == ("recovering", "lost", 0, 1)
    assert job.reason == Reason.WORKER_KILLED.sentence
    assert launched == [job.pk]


def _starve(job: Job, clock: FixedClock, owner: str) -> None:
    """A run of the job that gets no time for longer than its lease lasts."""
    assert take_lease(job_id=job.pk, owner=owner, clock=clock)
    Job.objects.filter(pk=job.pk).update(observed="running")
    clock.forward(LEASE_TTL.total_seconds())
    check_jobs(clock=clock)
    job.refresh_from_db()


def test_losing_a_lease_to_load_is_not_a_crash_and_its_reason_names_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "_RENEWED_WITHIN_S", 0.0)  # these runs never renew it
    clock = FixedClock()
    job = make_job(clock=clock)
    _starve(job, clock, new_owner())
    assert (job.observed, job.reason_code, job.crashes, job.losses) == ("recovering", "lost", 0, 1)
    busy = Reason.MACHINE_BUSY.change(seconds=90)
    assert job.reason == busy.sentence
    for _ in range(LOSSES_ALLOWED):
        assert job.observed == "recovering"
        _starve(job, clock, new_owner())
    assert (job.observed, job.reason_code, job.crashes) == ("failed", "lost", 0)
    assert job.reason == fail_after_retries(busy, LOSSES_ALLOWED + 1).sentence


def test_what_cannot_be_known_of_another_machine_is_not_claimed() -> None:
    clock = FixedClock()
    job = make_job(clock=clock)
    _starve(job, clock, "a name of another machine")
    assert job.reason == Reason.MACHINE_GONE.change(seconds=90).sentence


def test_no_reason_of_a_failed_job_says_that_it_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job()
    for number in range(CRASHES_ALLOWED + 1):
        owner = f"run-{number}"
        assert take_lease(job_id=job.pk, owner=owner)
        process = subprocess.Popen(["sh", "-c", "exit 3"])
        tasks._wait_for(job.pk, owner, process, kills=0)
    job.refresh_from_db()
    assert (job.observed, job.crashes) == ("failed", CRASHES_ALLOWED + 1)
    assert job.reason == fail_after_retries(Reason.PROCESS_DIED.change(how="exit code 3"), 6).sentence
    assert "started again" not in job.reason


@pytest.mark.parametrize("given_back", [True, False])
def test_a_process_that_lost_its_lease_has_not_crashed(given_back: bool) -> None:
    job = make_job()
    assert take_lease(job_id=job.pk, owner="starved")
    if given_back:
        Job.objects.filter(pk=job.pk).update(lease_owner="", lease_expires_at=None, observed="recovering")
    tasks._wait_for(job.pk, "starved", subprocess.Popen(["sh", "-c", "exit 75"]), kills=0)
    job.refresh_from_db()
    assert (job.crashes, job.losses) == (0, 0 if given_back else 1)


def test_what_a_checkpoint_forgives() -> None:
    job, epoch = make_running_job()
    Job.objects.filter(pk=job.pk).update(crashes=3, losses=7)
    Recorder(job.pk, epoch, keep_checkpoints=3).record(checkpoint_saved(1))
    job.refresh_from_db()
    assert (job.crashes, job.losses) == (0, 0)
