"""Stopping is never a crash: a process that is asked to end gives its lease back in time, whatever it is at."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rig.servers import ROOT, server_process, wait_until
from tests.factories import make_job
from tests.webapp import scheduler_rows
from webapp.jobs import tasks
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import films
from webapp.jobs.running.graceful_exit import HEARD_WITHIN_S, LEAVE_WITHIN_S, GracefulExit
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.recovery import hand_back
from webapp.jobs.running.runner import run_job
from webapp.jobs.surfaces import measuring
from webapp.jobs.surfaces.measuring import SURVEYING
from webapp.jobs.surfaces.models import Surface, SurfaceState
from webapp.processes.worker_stop import WorkerStop
from webapp.schedulers import leases as scheduler_leases

pytestmark = [pytest.mark.django_db(transaction=True)]

FOREVER = ["sleep", "3600"]


def _leave(give_back: Any) -> int:
    """Ask for the end, and say with which exit code it came."""
    codes: list[int] = []
    over = threading.Event()

    def end(code: int) -> None:
        codes.append(code)
        over.set()

    GracefulExit(give_back, pause=lambda _: None, end=end).ask()
    assert over.wait(60)
    return codes[0]


def test_a_process_that_is_asked_to_end_gives_its_lease_back_and_counts_no_crash() -> None:
    job = make_job()
    assert take_lease(job_id=job.pk, owner="stopped")
    Job.objects.filter(pk=job.pk).update(observed="starting")
    assert _leave(lambda: hand_back(job_id=job.pk, owner="stopped")) == 0
    job.refresh_from_db()
    assert (job.observed, job.reason_code, job.lease_owner) == ("recovering", "handover", "")
    assert (job.crashes, job.losses, job.lease_expires_at) == (0, 0, None)


@pytest.mark.parametrize(("looks", "time_left_s"), [(True, LEAVE_WITHIN_S), (False, HEARD_WITHIN_S)])
def test_only_work_that_looks_is_given_time_for_a_checkpoint(looks: bool, time_left_s: float) -> None:
    pauses: list[float] = []
    over = threading.Event()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if looks:
            assert leaving.requested.is_set()

    leaving = GracefulExit(lambda: None, pause=pause, end=lambda _: over.set())
    assert not leaving.requested.is_set()
    leaving.ask()
    assert over.wait(60)
    assert sum(pauses) == time_left_s


def test_a_process_that_holds_no_lease_takes_none_away() -> None:
    job = make_job()
    assert take_lease(job_id=job.pk, owner="another")
    assert _leave(lambda: hand_back(job_id=job.pk, owner="stopped")) == 0
    job.refresh_from_db()
    assert (job.observed, job.lease_owner) == ("queued", "another")


def test_a_run_that_is_asked_to_end_before_it_began_begins_nothing() -> None:
    job = make_job()
    requested = threading.Event()
    requested.set()
    assert run_job(job.pk, owner="stopped", hand_over=requested) == 0
    job.refresh_from_db()
    assert (job.observed, job.lease_epoch, job.crashes) == ("queued", 0, 0)


@pytest.mark.parametrize("how", ["exit 0", "exit 1", "kill -KILL $$"])
def test_however_a_process_ends_that_the_worker_has_stopped_that_is_no_crash(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    stopped.set()
    monkeypatch.setattr(tasks.watched, "stopped", stopped)
    job = make_job()
    assert take_lease(job_id=job.pk, owner="stopped")
    Job.objects.filter(pk=job.pk).update(observed="running")
    tasks._wait_for(job.pk, "stopped", subprocess.Popen(["sh", "-c", how]), kills=0)
    job.refresh_from_db()
    assert (job.observed, job.reason_code, job.crashes, job.lease_owner) == ("recovering", "handover", 0, "")


def test_a_process_that_sigterm_ends_while_it_loads_has_not_crashed(tmp_path: Path) -> None:
    """The signal may come from outside, to the whole group, before the worker knows that it is to stop."""
    job = make_job()
    # Python imports this first, so that the process loads for as long as the signal takes to come.
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(3600)")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "run-job", job.pk, "--owner", "stopped"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    process.send_signal(signal.SIGTERM)
    tasks._wait_for(job.pk, "stopped", process, kills=0)
    assert process.returncode == -signal.SIGTERM
    job.refresh_from_db()
    assert (job.observed, job.crashes, job.losses, job.lease_owner) == ("queued", 0, 0, "")


def test_a_healthy_job_is_as_it_was_after_any_number_of_stops() -> None:
    job = make_job()
    for number in range(20):
        assert take_lease(job_id=job.pk, owner=f"run-{number}")
        Job.objects.filter(pk=job.pk).update(observed="starting")
        assert hand_back(job_id=job.pk, owner=f"run-{number}")
    job.refresh_from_db()
    assert (job.observed, job.crashes, job.losses) == ("recovering", 0, 0)


@pytest.mark.stack
def test_a_job_whose_process_hears_nothing_is_given_back_in_time(
    service_environment: dict[str, str],
) -> None:
    """It is in the middle of a call that takes an hour, as opening a platform may."""
    job = make_job()
    command = [sys.executable, "manage.py", "run-job", job.pk, "--owner", "stopped"]
    environment = {**os.environ, **service_environment, "STARLING_FAILPOINTS": "before_open:hang"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        wait_until(lambda: _observed(job) == "starting", within_s=240, what="the job is at its long call")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
    assert _observed(job) == "recovering"
    assert (job.reason_code, job.lease_owner, job.crashes, job.losses) == ("handover", "", 0, 0)


def _observed(job: Job) -> str:
    job.refresh_from_db()
    return job.observed


# Whatever else the worker is at


def test_a_stopped_training_of_a_scheduler_waits_for_the_next_worker() -> None:
    training = scheduler_rows.ask()
    assert scheduler_leases.take(training.pk, "stopped")
    assert _leave(lambda: scheduler_leases.hand_back(training.pk, "stopped")) == 0
    training.refresh_from_db()
    assert (training.state, training.crashes, training.lease_owner) == ("queued", 0, "")
    assert not scheduler_leases.hand_back(training.pk, "stopped")


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> WorkerStop:
    """A worker that was asked to stop."""
    stop = WorkerStop()
    stop.ask()
    monkeypatch.setattr("webapp.jobs.policies.film_process.worker_stop", stop)
    monkeypatch.setattr(measuring, "worker_stop", stop)
    return stop


def test_a_worker_that_stops_ends_its_processes_and_is_gone_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("webapp.processes.worker_stop.GONE_WITHIN_S", 0.0)
    stop, done = WorkerStop(), []
    stop.first(lambda: done.append("jobs handed over"))
    process = subprocess.Popen(FOREVER, text=True)
    with stop.ends(process):
        stop.ask()
        stop.carry_out(end=done.append)
        assert process.wait(timeout=60) == -signal.SIGKILL
    assert done == ["jobs handed over", 0]


def test_a_film_that_a_stop_cuts_off_is_made_by_the_next_worker(stopped: WorkerStop) -> None:
    job = make_job()
    film = Film.objects.create(
        job=job,
        checkpoint="gone.checkpoint",
        sha256="0" * 64,
        round_no=1,
        since=job.since,
        requested_by=job.created_by,
    )
    films.FILMING.run(film.pk)
    film.refresh_from_db()
    assert (film.state, film.reason) == (FilmState.QUEUED, "")


def test_a_surface_that_a_stop_cuts_off_is_measured_by_the_next_worker(stopped: WorkerStop) -> None:
    job = make_job()
    surface = Surface.objects.create(
        job=job,
        checkpoint="gone.checkpoint",
        sha256="0" * 64,
        round_no=1,
        grid=9,
        span=1.0,
        episodes=1,
        since=job.since,
        requested_by=job.created_by,
    )
    SURVEYING.run(surface.pk)
    surface.refresh_from_db()
    assert (surface.state, surface.reason, surface.points, surface.done) == (SurfaceState.QUEUED, "", [], 0)


@pytest.mark.stack
def test_beat_leaves_at_once_on_sigterm(service_environment: dict[str, str], tmp_path: Path) -> None:
    """It does not wait for the end of its interpreter, which takes seconds on a busy machine and here an hour."""
    (tmp_path / "sitecustomize.py").write_text("import atexit, time; atexit.register(time.sleep, 3600)")
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "webapp.celery", "beat", "--pidfile="]
    environment = {**service_environment, "PYTHONPATH": str(tmp_path)}
    log = tmp_path / "beat.log"
    with server_process(command, environment=environment, log=log) as beat:
        wait_until(lambda: "beat is ready" in log.read_text(), within_s=120, what="beat is ready")
        beat.send_signal(signal.SIGTERM)
        assert beat.wait(timeout=60) == 0
