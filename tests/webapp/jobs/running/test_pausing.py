"""Pausing a job and letting it go on: by hand, whatever it was doing."""

import os
import threading

import pytest
from django.db.models.signals import post_save

from tests.factories import FixedClock, make_job, make_running_job, make_spec, stopped
from webapp.clock import SYSTEM_CLOCK
from webapp.database.leases import LEASE_TTL
from webapp.jobs.invariants import findings
from webapp.jobs.models import Checkpoint, Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running import runner
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import check_jobs
from webapp.jobs.services import CannotPause, go_on, pause_job, stop_job

pytestmark = pytest.mark.django_db


def test_a_waiting_job_is_paused_at_once_and_waits_again() -> None:
    job = make_job()
    paused = pause_job(job=job, user="me")
    assert (paused.observed, paused.desired, paused.reason_code) == ("paused", "paused", "paused")
    assert pause_job(job=job, user="me").last_seq == paused.last_seq, "pausing twice says nothing new"
    again = go_on(job=job, user="me")
    assert (again.observed, again.desired) == ("queued", "run")
    assert again.reason == Reason.BEGINS_AGAIN.sentence


def test_a_running_job_pauses_when_its_run_says_so() -> None:
    job, epoch = make_running_job()
    job_now = pause_job(job=job, user="me")
    assert (job_now.observed, job_now.desired) == ("running", "paused")
    Recorder(job.pk, epoch, keep_checkpoints=3, clock=SYSTEM_CLOCK).finish(stopped("paused"))
    job.refresh_from_db()
    assert (job.observed, job.reason_code) == ("paused", "paused")


def test_one_whose_process_died_is_paused_by_the_next_look() -> None:
    clock = FixedClock()
    job, _ = make_running_job(clock)
    pause_job(job=job, user="me", clock=clock)
    clock.forward(LEASE_TTL.total_seconds() + 1)
    check_jobs(clock=clock)
    job.refresh_from_db()
    assert job.observed == "paused"


def test_what_is_over_or_being_stopped_is_not_paused() -> None:
    over = stop_job(job=make_job(), user="me")
    with pytest.raises(CannotPause, match=r"over \(stopped\)"):
        pause_job(job=over, user="me")
    running, _ = make_running_job()
    with pytest.raises(CannotPause, match="being stopped"):
        pause_job(job=stop_job(job=running, user="me"), user="me")
    assert Job.objects.get(pk=running.pk).desired == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_a_paused_run_goes_on_from_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {
        "training__scaling__actors": 2,
        "training__rollout__steps_per_call": 16,
        "training__stop": {"rounds": 4, "env_steps": None},
        "training__checkpoints": {"every_rounds": 1},
        "platform__workers": 1,
    }
    job = make_job(spec=make_spec("hopper-simulated", **changes))
    monkeypatch.setattr(runner, "_ASK_EVERY_S", 0.0)

    def pause_after_the_first(instance: Checkpoint, **_: object) -> None:
        if instance.round_no == 1:
            pause_job(job=job, user="me")

    post_save.connect(pause_after_the_first, sender=Checkpoint)
    try:
        runner.run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event())
    finally:
        post_save.disconnect(pause_after_the_first, sender=Checkpoint)
    job.refresh_from_db()
    assert (job.observed, job.reason_code) == ("paused", "paused")
    assert 1 <= job.round_no < 4

    go_on(job=job, user="me")
    runner.run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event())
    job.refresh_from_db()
    assert (job.observed, job.round_no, job.rounds.count()) == ("succeeded", 4, 4)
    assert findings(SYSTEM_CLOCK.now()) == []
