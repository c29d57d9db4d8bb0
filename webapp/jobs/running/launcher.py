"""Starts a job's process, watches it, and starts it again at once if it dies before its job is done."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Desired, Job
from webapp.jobs.running.leases import is_idle
from webapp.jobs.running.places import places
from webapp.jobs.running.recovery import run_ended
from webapp.jobs.running.runner import CRASHED_EXIT
from webapp.jobs.states import ACTIVE

log = logging.getLogger(__name__)

_SLOWEST_RESTART_S = 4.0


class _Watched:
    """The jobs (and trainings of schedulers) this worker watches, and their processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[bytes] | None] = {}
        self.stopping = False

    @contextmanager
    def claim(self, job_id: str) -> Iterator[bool]:
        """Whether the job is ours to watch while the block runs; not if we watch it already, or are full."""
        with self._lock:
            ours = not self.stopping and job_id not in self._processes and len(self._processes) < places()
            if ours:
                self._processes[job_id] = None
        try:
            yield ours
        finally:
            if ours:
                with self._lock:
                    del self._processes[job_id]

    def start(self, job_id: str, command: list[str]) -> subprocess.Popen[bytes] | None:
        """Its process, by a command of ours; None when the worker is stopping."""
        program = [sys.executable, str(settings.BASE_DIR / "manage.py")]
        with self._lock:
            if self.stopping:
                return None
            process = self._processes[job_id] = subprocess.Popen([*program, *command], cwd=settings.BASE_DIR)
            return process

    def stop(self) -> None:
        """Ask every process to hand its job over. Their watchers then return."""
        with self._lock:
            self.stopping = True
            for process in self._processes.values():
                if process is not None and process.poll() is None:
                    process.send_signal(signal.SIGTERM)


watched = _Watched()


def _command(job_id: str, owner: str) -> list[str]:
    return ["run-job", job_id, "--owner", owner, "--parent", str(os.getpid())]


def launch_and_watch(job_id: str) -> None:
    """Run the job's process until the job needs none any more. Harmless when the job is looked after already."""
    with watched.claim(job_id) as ours:
        while ours and _wants_process(job_id):
            owner = uuid.uuid4().hex
            process = watched.start(job_id, _command(job_id, owner))
            if process is None:
                return
            _wait_for(job_id, owner, process)
            if watched.stopping:
                return
            # Whoever raised a budget or handed a job back while the process was ending found it watched: look again.
            crashes = Job.objects.values_list("crashes", flat=True).get(pk=job_id)
            time.sleep(min(max(0.0, crashes - 1.0), _SLOWEST_RESTART_S))


def _wants_process(job_id: str) -> bool:
    job = Job.objects.filter(pk=job_id).first()
    return (
        job is not None
        and job.observed in ACTIVE
        and job.desired == Desired.RUN
        and is_idle(job, SYSTEM_CLOCK.now())
    )


def _wait_for(job_id: str, owner: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for the process, and note its end if it could not do so itself."""
    code = process.wait()
    job = Job.objects.get(pk=job_id)
    if watched.stopping and code == 0:
        return
    reason = f"The job's process ended unexpectedly ({how_it_ended(code)}). It is started again."
    if job.lease_owner == owner:
        run_ended(job_id=job_id, epoch=job.lease_epoch, reason=reason)
    elif code not in (
        0,
        CRASHED_EXIT,
    ):  # it died before it could take the lease; or said itself what went wrong
        run_ended(job_id=job_id, epoch=None, reason=reason)


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
