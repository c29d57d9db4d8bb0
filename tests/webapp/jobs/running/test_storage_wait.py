"""Checkpoint folders that are full, read-only or away: nothing learned is lost or paid twice, and jobs go on."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from rig.servers import wait_until
from tests.factories import FixedClock, make_job, make_spec
from tests.webapp.bookkeeping import assert_whole
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import EventKind, Job
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.running.runner import run_job
from webapp.jobs.running.storage_wait import LEFT_TO_OTHERS_FOR, leave_to_others, resume_with_storage
from webapp.jobs.services import CannotStartOver, pause_job, start_over
from webapp.jobs.tasks import launch_job

pytestmark = [pytest.mark.django_db(transaction=True)]


def _job() -> Any:
    """Six rounds of two actors, a checkpoint after each second."""
    return make_job(
        spec=make_spec(
            training__scaling__actors=2,
            training__rollout__steps_per_call=16,
            training__stop={"rounds": 6, "env_steps": None},
            training__checkpoints={"every_rounds": 2},
            training__evaluation={"every_rounds": 6, "episodes": 1},
            platform__workers=1,
        )
    )


class _AfterRound(threading.Event):
    """Asks to hand the job over once this round is over."""

    def __init__(self, job_id: str, round_no: int) -> None:
        super().__init__()
        self._job_id = job_id
        self._round_no = round_no

    def is_set(self) -> bool:
        return Job.objects.filter(pk=self._job_id, round_no__gte=self._round_no).exists()


def _run(job: Job, until_round: int | None = None) -> None:
    hand_over = _AfterRound(job.pk, until_round) if until_round else threading.Event()
    run_job(job.pk, owner=os.urandom(8).hex(), hand_over=hand_over)
    job.refresh_from_db()


def _later() -> FixedClock:
    return FixedClock(SYSTEM_CLOCK.now() + timedelta(minutes=1))


@contextmanager
def _running(job: Job) -> Iterator[None]:
    def run() -> None:
        try:
            run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(timeout=120)
    assert not thread.is_alive()


def _waits(job: Job) -> bool:
    return bool(Job.objects.get(pk=job.pk).reason.startswith("The checkpoint of round"))


def _rounds_repeated(job: Job) -> bool:
    return bool(job.events.filter(kind=EventKind.RESUMED).exists())


@contextmanager
def _tmpfs(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(folder: Path) -> Callable[[], None]:
    with pytest.raises(OSError, match="No space"), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**16))
    return lambda: (folder / "filler").unlink()


def _make_read_only(folder: Path) -> Callable[[], None]:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    return lambda: void(subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True))


def void(_: object) -> None:
    """Return None."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("spoil", [_fill, _make_read_only])
def test_a_run_waits_for_its_disk_and_repeats_no_round(spoil: Callable[[Path], Callable[[], None]]) -> None:
    job = _job()
    folder = checkpoint_folder(job.pk)
    with _tmpfs(folder):
        mend = spoil(folder)
        with _running(job):
            wait_until(lambda: _waits(job), within_s=60, what="the job waits for its disk")
            mend()
        job.refresh_from_db()
        assert (job.observed, job.round_no, job.crashes) == ("succeeded", 6, 0)
        assert not _rounds_repeated(job)
        assert_whole(job)


class _AwayAfterRound(_AfterRound):
    """Takes the folder away between two rounds, once this round is over, and brings it back after three waits."""

    waits = 0

    def is_set(self) -> bool:
        folder = checkpoint_folder(self._job_id)
        if not self.waits and folder.exists() and super().is_set():
            folder.rename(folder.with_name("away"))
        return False

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        folder = checkpoint_folder(self._job_id)
        assert not folder.exists(), "a folder was made in place of the one that is away"
        if self.waits == 3:
            folder.with_name("away").rename(folder)
        return False


def test_a_running_job_whose_folder_is_away_waits_and_makes_no_other() -> None:
    job = _job()
    _run(job, until_round=2)
    outage = _AwayAfterRound(job.pk, 3)
    run_job(job.pk, owner=os.urandom(8).hex(), hand_over=outage)
    job.refresh_from_db()
    assert outage.waits >= 3
    assert (job.observed, job.round_no, job.crashes) == ("succeeded", 6, 0)
    assert job.events.filter(kind=EventKind.RESUMED).count() == 1  # after the first run, and no other
    assert_whole(job)


def test_a_machine_without_a_jobs_checkpoints_leaves_the_job_to_the_one_that_has_them(
    settings: Any, tmp_path: Path
) -> None:
    job = _job()
    _run(job, until_round=4)
    first_data, events, epoch = settings.STARLING_DATA, job.last_seq, job.lease_epoch
    settings.STARLING_DATA = tmp_path
    for _ in range(3):
        launch_job(job.pk)
    job.refresh_from_db()
    assert (job.observed, job.last_seq, job.lease_epoch) == ("recovering", events, epoch)
    assert str(checkpoint_folder(job.pk)) in job.reason
    assert not leave_to_others(job, clock=FixedClock(job.since + LEFT_TO_OTHERS_FOR))
    settings.STARLING_DATA = first_data
    assert not leave_to_others(job)
    _run(job)
    assert (job.observed, job.round_no) == ("succeeded", 6)


def test_checkpoints_that_cannot_be_read_pause_the_job_and_it_goes_on_once_they_are_back() -> None:
    job = _job()
    _run(job, until_round=4)
    reached, rows = job.round_no, job.checkpoints.count()
    folder = checkpoint_folder(job.pk)
    away = folder.rename(folder.with_name("away"))
    _run(job)
    assert (job.observed, job.reason_code, job.round_no) == ("paused", "unreadable", reached)
    assert (job.rounds.count(), job.checkpoints.count()) == (reached, rows)
    assert str(checkpoint_folder(job.pk)) in job.reason
    resume_with_storage(clock=_later())
    job.refresh_from_db()
    assert job.observed == "paused"
    away.rename(folder)
    resume_with_storage(clock=_later())
    _run(job)
    assert (job.observed, job.round_no) == ("succeeded", 6)
    assert_whole(job)


def test_a_job_goes_back_to_an_older_checkpoint_that_can_be_read_and_says_so() -> None:
    job = _job()
    _run(job, until_round=4)
    newest = job.checkpoints.order_by("-round_no").first()
    (checkpoint_folder(job.pk) / newest.name).unlink()
    _run(job)
    assert job.observed == "succeeded"
    said = [
        one["text"] for one in job.events.filter(kind=EventKind.RESUMED).values_list("payload", flat=True)
    ]
    assert any(text.startswith("Its newest checkpoint") for text in said)
    assert_whole(job)


def test_only_people_start_a_job_over_and_only_if_its_checkpoints_cannot_be_read() -> None:
    job = _job()
    _run(job, until_round=4)
    with pytest.raises(CannotStartOver):
        start_over(job=job, user="me")
    shutil.rmtree(checkpoint_folder(job.pk))
    _run(job)
    assert job.reason_code == "unreadable"
    start_over(job=job, user="me")
    _run(job)
    assert (job.observed, job.round_no) == ("succeeded", 6)
    assert_whole(job)


def test_a_job_that_people_pause_while_it_waits_for_its_files_stays_paused() -> None:
    job = _job()
    _run(job, until_round=4)
    folder = checkpoint_folder(job.pk)
    away = folder.rename(folder.with_name("away"))
    _run(job)
    pause_job(job=job, user="me")
    away.rename(folder)
    resume_with_storage(clock=_later())
    job.refresh_from_db()
    assert job.observed == "paused"
