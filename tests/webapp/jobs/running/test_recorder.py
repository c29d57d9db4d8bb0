"""Events become rows without a gap, under the run's own epoch, and a dead run leaves nothing wrong behind."""

import threading

import pytest
from django.db import connection

from tests.factories import (
    FixedClock,
    call_failed,
    checkpoint_saved,
    evaluated,
    make_job,
    make_running_job,
    release_lease,
    round_finished,
    stopped,
)
from tests.figures import figures_in
from training.engine.messages import Tick
from webapp.clock import SYSTEM_CLOCK
from webapp.database.leases import LEASE_TTL, LeaseLost
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.models import Checkpoint, Event, Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import CRASHES_ALLOWED, begin_run, resume_point, run_ended

pytestmark = pytest.mark.django_db


def _numbers(job: Job) -> list[int]:
    return list(Event.objects.filter(job=job).order_by("seq").values_list("seq", flat=True))


def _recording(clock: FixedClock | None = None) -> tuple[Job, int, Recorder]:
    job, epoch = make_running_job(clock)
    return job, epoch, Recorder(job.pk, epoch, keep_checkpoints=3, clock=clock or SYSTEM_CLOCK)


def test_a_round_is_a_row_an_event_and_the_latest_figures() -> None:
    job, epoch, recorder = _recording()
    recorder.record(round_finished(1))
    recorder.record(round_finished(2, mean=None))
    recorder.record(evaluated(2, 123.0))
    job.refresh_from_db()
    assert (job.round_no, job.total_progress, job.actors, job.platform_s) == (2, 512, 8, 2.0)
    assert (job.training_score, job.evaluated_score) == (20.0, 123.0)
    assert [(row.round_no, row.epoch) for row in job.rounds.order_by("round_no")] == [(1, epoch), (2, epoch)]
    assert _numbers(job) == list(range(1, job.last_seq + 1))


def test_figures_that_are_not_numbers_are_stored_as_nothing() -> None:
    job, _, recorder = _recording()
    recorder.record(round_finished(1, mean=float("nan")))
    assert job.rounds.get().report["episode_return_mean"] is None


def test_failed_calls_wait_for_the_next_event() -> None:
    job, _, recorder = _recording()
    before = len(_numbers(job))
    for number in range(3):
        recorder.record(call_failed(f"r1-s{number}-a1"))
    assert len(_numbers(job)) == before
    recorder.record(Tick(at_s=1.0, calls_in_flight=1, waiting_for="actors"))
    assert len(_numbers(job)) == before + 3
    assert job.events.last().kind == "call_failed"


def test_the_last_event_ends_the_job_and_gives_the_lease_back() -> None:
    job, _, recorder = _recording()
    recorder.record(round_finished(1))
    recorder.finish(stopped("steps"))
    job.refresh_from_db()
    assert (job.observed, job.reason_code, job.reason) == ("succeeded", "steps", "All is done.")
    assert (job.lease_owner, job.lease_expires_at) == ("", None)
    assert job.summary["cost_usd"] == "0"
    assert [event.kind for event in job.events.order_by("seq")][-2:] == ["stopped", "state"]


def test_an_old_epoch_writes_nothing() -> None:
    clock = FixedClock()
    job, _, recorder = _recording(clock)
    clock.forward(LEASE_TTL.total_seconds())
    epoch = take_lease(job_id=job.pk, owner="new", clock=clock)
    assert epoch is not None
    before = _numbers(job)
    for event in (round_finished(1), evaluated(1), checkpoint_saved(1)):
        with pytest.raises(LeaseLost):
            recorder.record(event)
    with pytest.raises(LeaseLost):
        recorder.finish(stopped())
    assert _numbers(job) == before
    assert not job.rounds.exists()
    assert not job.checkpoints.exists()


def test_only_the_last_checkpoints_are_kept() -> None:
    job, _, recorder = _recording()
    for round_no in range(1, 6):
        recorder.record(checkpoint_saved(round_no))
    assert sorted(job.checkpoints.values_list("round_no", flat=True)) == [3, 4, 5]


def test_resuming_forgets_what_came_after_the_checkpoint_and_says_so() -> None:
    job, epoch, recorder = _recording()
    for round_no in (1, 2, 3, 4):
        recorder.record(round_finished(round_no))
        if round_no == 2:
            recorder.record(checkpoint_saved(2))
    assert run_ended(job_id=job.pk, epoch=epoch, why=Reason.PROCESS_DIED.change(how="killed by SIGKILL"))
    epoch = take_lease(job_id=job.pk, owner="again") or 0
    begin_run(job_id=job.pk, epoch=epoch)
    found = resume_point(job_id=job.pk, epoch=epoch, load=lambda row: b"data")
    assert found == (2, b"data")
    job.refresh_from_db()
    assert (job.round_no, job.total_progress) == (2, 512)
    assert list(job.rounds.order_by("round_no").values_list("round_no", flat=True)) == [1, 2]
    text = job.events.get(kind="resumed").payload["text"]
    assert figures_in(text) == ["2", "3", "4"]


def test_a_damaged_checkpoint_is_passed_over() -> None:
    job, epoch, recorder = _recording()
    for round_no in (1, 2):
        recorder.record(round_finished(round_no))
        recorder.record(checkpoint_saved(round_no))

    def load(row: Checkpoint) -> bytes | None:
        return b"older" if row.round_no == 1 else None

    assert resume_point(job_id=job.pk, epoch=epoch, load=load) == (1, b"older")
    assert job.checkpoints.get().round_no == 1


def test_a_first_run_has_nothing_to_resume() -> None:
    job, epoch = make_running_job()
    assert resume_point(job_id=job.pk, epoch=epoch, load=lambda row: b"") is None
    assert not job.events.filter(kind="resumed").exists()


def test_too_many_crashes_without_a_new_checkpoint_fail_the_job() -> None:
    job = make_job()
    for crash in range(CRASHES_ALLOWED + 1):
        epoch = take_lease(job_id=job.pk, owner=f"run-{crash}")
        assert epoch is not None
        begin_run(job_id=job.pk, epoch=epoch)
        assert run_ended(job_id=job.pk, epoch=epoch, why=Reason.PROCESS_DIED.change(how="exit code 1"))
    job.refresh_from_db()
    assert job.observed == "failed"
    assert "the 6th time" in job.reason


def test_a_checkpoint_forgives_crashes() -> None:
    job, _, recorder = _recording()
    Job.objects.filter(pk=job.pk).update(crashes=4)
    recorder.record(checkpoint_saved(1))
    job.refresh_from_db()
    assert job.crashes == 0


def test_an_end_is_reported_once() -> None:
    job, epoch = make_running_job()
    assert run_ended(job_id=job.pk, epoch=epoch, why=Reason.PROCESS_DIED.change(how="killed by SIGKILL"))
    assert not run_ended(job_id=job.pk, epoch=epoch, why=Reason.PROCESS_DIED.change(how="killed by SIGKILL"))
    job.refresh_from_db()
    assert (job.observed, job.crashes) == ("recovering", 1)


@pytest.mark.django_db(transaction=True)
def test_numbers_have_no_gap_with_many_writers() -> None:
    job, epoch = make_running_job()

    def write(writer: int) -> None:
        try:
            for number in range(10):
                append_events(job.pk, [note(f"{writer}-{number}")] * 2, clock=SYSTEM_CLOCK, epoch=epoch)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    job.refresh_from_db()
    assert _numbers(job) == list(range(1, job.last_seq + 1))
    assert len(_numbers(job)) >= 120


def test_a_released_lease_is_no_licence_to_write() -> None:
    job, epoch, recorder = _recording()
    release_lease(job_id=job.pk, epoch=epoch)
    with pytest.raises(LeaseLost):
        recorder.record(round_finished(1))


def test_the_best_and_the_least_return_so_far_stand_on_the_job() -> None:
    job, epoch = make_running_job()
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no, mean in enumerate((20.0, None, 55.5, float("nan"), -3.0, 30.0), start=1):
        recorder.record(round_finished(round_no, mean=mean))
    job.refresh_from_db()
    assert (job.training_score, job.best_training_score, job.worst_training_score) == (30.0, 55.5, -3.0)
    assert (job.algorithm, job.subject, job.cloud) == ("ppo", "CartPole-v1", "local")
