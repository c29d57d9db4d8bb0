"""The worker's tasks. Messages carry ids only; each task may arrive twice, late, or never.

The first one starts a job's process, watches it, and restarts it at once if it dies before its job ends.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from celery import shared_task
from celery.signals import worker_ready
from django.conf import settings

from training.engine.memory_limit import kills_for_memory
from webapp.clock import SYSTEM_CLOCK
from webapp.database.leases import is_idle, new_owner
from webapp.doorbell import ask_to_launch
from webapp.job_states import ACTIVE
from webapp.jobs.billing import bills
from webapp.jobs.billing.burn_rate import announce_expected_limits
from webapp.jobs.launch.forecasts import forecast_recent_job
from webapp.jobs.models import Desired, Job
from webapp.jobs.running.database_wait import DatabaseWait
from webapp.jobs.running.graceful_exit import LEAVE_WITHIN_S
from webapp.jobs.running.job_slots import core_places, core_sentence, needs_core, places, waiting_for_core
from webapp.jobs.running.recovery import check_jobs, hand_back, record_exit
from webapp.jobs.running.storage_wait import leave_to_others, resume_with_storage
from webapp.processes.worker_stop import worker_stop

log = logging.getLogger(__name__)

_SLOWEST_RESTART_S = 4.0
_HELD_UP_S = 2.0
"""The extra time a process gets to leave on a busy machine."""


class _Watched:
    """The jobs (and scheduler trainings) that this worker watches, and their processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[bytes] | None] = {}
        self._on_cores: set[str] = set()
        self.stopped = threading.Event()

    @property
    def stopping(self) -> bool:
        return self.stopped.is_set()

    @contextmanager
    def claim(self, job_id: str, *, on_core: bool = False) -> Iterator[bool]:
        """Yield whether this worker may watch the job; False if it watches it already or is full.

        `on_core`: the job computes on this machine and needs a free core.
        """
        with self._lock:
            ours = not self.stopping and job_id not in self._processes and len(self._processes) < places()
            ours = ours and (not on_core or len(self._on_cores) < core_places())
            if ours:
                self._processes[job_id] = None
                if on_core:
                    self._on_cores.add(job_id)
        try:
            yield ours
        finally:
            if ours:
                with self._lock:
                    del self._processes[job_id]
                    self._on_cores.discard(job_id)

    def jobs_on_cores(self) -> set[str]:
        """Return the number of this worker's jobs that compute on this machine."""
        with self._lock:
            return set(self._on_cores)

    def start(self, job_id: str, command: list[str]) -> subprocess.Popen[bytes] | None:
        """Start its process; None if the worker is stopping."""
        program = [sys.executable, str(settings.BASE_DIR / "manage.py")]
        with self._lock:
            if self.stopping:
                return None
            process = self._processes[job_id] = subprocess.Popen([*program, *command], cwd=settings.BASE_DIR)
            return process

    def stop(self) -> None:
        """Make every process hand its job over, and kill those that do not. Their watchers then return."""
        with self._lock:
            self.stopped.set()
            processes = [process for process in self._processes.values() if process is not None]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        deadline_s = time.monotonic() + LEAVE_WITHIN_S + _HELD_UP_S
        for process in processes:
            try:
                process.wait(max(0.0, deadline_s - time.monotonic()))
            except subprocess.TimeoutExpired:  # its watcher releases its lease
                log.warning("process %s does not leave; killing it", process.pid)
                process.kill()


watched = _Watched()


def _command(job_id: str, owner: str) -> list[str]:
    return ["run-job", job_id, "--owner", owner, "--parent", str(os.getpid())]


@shared_task(name="webapp.jobs.tasks.launch_job", acks_late=False, max_retries=0)
def launch_job(job_id: str) -> None:
    """Run the job's process until the job needs none. Does nothing if the job is watched already.

    A job that computes on this machine waits for a free core; the longest waiting job is first. One whose checkpoints
    another machine has is left to that machine.
    """
    job = Job.objects.filter(pk=job_id).first()
    if job is None or not _wants_process(job_id):
        return
    on_core = needs_core(job)
    if on_core and not _has_turn(job):
        _note_waiting(job)
        return
    if leave_to_others(job):
        return
    with watched.claim(job_id, on_core=on_core) as ours:
        while ours and _wants_process(job_id):
            owner = new_owner()
            kills = kills_for_memory()
            process = watched.start(job_id, _command(job_id, owner))
            if process is None:
                return
            _wait_for(job_id, owner, process, kills)
            if watched.stopping:
                return
            # A raised budget or a hand-over during the process's end found the job watched: check again.
            crashes = Job.objects.values_list("crashes", flat=True).get(pk=job_id)
            time.sleep(min(max(0.0, crashes - 1.0), _SLOWEST_RESTART_S))
    if ours and on_core:
        _ask_the_next()
    elif on_core:
        _note_waiting(job)


def _has_turn(job: Job) -> bool:
    """Return whether a core is free for it and no other job is before it."""
    on_cores = watched.jobs_on_cores()
    if job.pk in on_cores:
        return False
    first = waiting_for_core(SYSTEM_CLOCK.shared_now()).exclude(pk__in=on_cores)
    free = max(0, core_places() - len(on_cores))
    return job.pk in first.values_list("pk", flat=True)[:free]


def _note_waiting(job: Job) -> None:
    """Note in its row that all cores are in use. This is no event: nothing has happened to the job."""
    on_cores = watched.jobs_on_cores()
    if job.pk in on_cores or len(on_cores) < core_places():
        return
    reason = core_sentence(len(on_cores))
    waiting = waiting_for_core(SYSTEM_CLOCK.shared_now()).filter(pk=job.pk)
    waiting.exclude(reason=reason).update(reason=reason)


def _ask_the_next() -> None:
    """Start the next waiting job now that a core is free, without waiting for the next check."""
    next_in_line = waiting_for_core(SYSTEM_CLOCK.shared_now()).exclude(pk__in=watched.jobs_on_cores()).first()
    if next_in_line is not None and not watched.stopping:
        ask_to_launch(next_in_line.pk)


def _wants_process(job_id: str) -> bool:
    job = Job.objects.filter(pk=job_id).first()
    return (
        job is not None
        and job.observed in ACTIVE
        and job.desired == Desired.RUN
        and is_idle(job.lease_expires_at, SYSTEM_CLOCK.shared_now())
    )


def _wait_for(job_id: str, owner: str, process: subprocess.Popen[bytes], kills: int) -> None:
    """Wait for the process, and record its end if it could not do so itself. `kills` are those for memory before it."""
    code = process.wait()
    wait = DatabaseWait(job_id, watched.stopped)
    if watched.stopping or code == -signal.SIGTERM:  # stopped on purpose: whatever its end, it is no crash
        wait(partial(hand_back, job_id=job_id, owner=owner))
        return
    memory_ran_out = kills_for_memory() > kills
    wait(partial(record_exit, job_id=job_id, owner=owner, code=code, memory_ran_out=memory_ran_out))


# The other tasks


@shared_task(name="webapp.jobs.tasks.tick")
def tick() -> None:
    """Every few seconds: repair what lost messages and dead processes left behind."""
    resume_with_storage()
    check_jobs()
    bills.queue_due_bills()
    announce_expected_limits()
    forecast_recent_job()


@shared_task(name="webapp.jobs.tasks.draw_up_bill")
def draw_up_bill(job_id: str) -> None:
    """Draw a job's bill up by part, if that is due."""
    bills.draw_up_bill(job_id)


@worker_ready.connect
def check_at_start(**_: object) -> None:
    """Check at start: a worker that died may have left jobs behind."""
    tick.delay()


@worker_stop.first
def hand_jobs_over() -> None:
    """Before the worker ends, its jobs write a checkpoint and wait for the next worker."""
    watched.stop()
