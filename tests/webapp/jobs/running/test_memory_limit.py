"""A job that takes more memory than it may is ended with a sentence, and the machine's other jobs go on."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from tests.factories import make_job, make_project, make_spec
from tests.hungry import hungry_package
from tests.memory import most_memory_mb, process_with
from webapp.jobs.launch.job_memory import memory_of
from webapp.jobs.models import Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running.leases import take_lease
from webapp.jobs.running.recovery import record_exit
from webapp.jobs.tasks import launch_job

_MARGIN_MB = 250
"""What a limit does not count: the code of libraries, and what a worker writes between two looks."""


@pytest.fixture
def surroundings(
    tmp_path: Path, service_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    for name, value in service_environment.items():
        monkeypatch.setenv(name, value)
    with hungry_package(tmp_path, monkeypatch), override_settings(STARLING_MAX_LOCAL_JOBS=4):
        yield monkeypatch


def _spec(environment: str, steps: int, copies: int, actors: int) -> Any:
    return make_spec(
        training__environment={"id": environment},
        training__scaling={"kind": "fixed", "actors": actors},
        training__rollout={"steps_per_call": steps, "environments_per_actor": copies},
        training__stop={"env_steps": None, "rounds": 2},
        platform={"kind": "local", "workers": 1},
    )


@contextmanager
def _peaks(*words: bytes) -> Iterator[list[float]]:
    """The peaks, in MB, of a process with these words, as long as there is one."""
    over, seen = threading.Event(), [0.0]

    def look() -> None:
        while not over.is_set():
            process = process_with(*words)
            while process is not None and not over.is_set():
                try:
                    seen.append(most_memory_mb(process))
                except (OSError, ValueError):
                    break
                time.sleep(0.01)
            time.sleep(0.05)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _run_beside(job: Job, other: Job) -> None:
    with ThreadPoolExecutor() as both:
        for done in [both.submit(launch_job, one.pk) for one in (job, other)]:
            done.result(timeout=600)
    job.refresh_from_db()
    other.refresh_from_db()


@pytest.mark.slow
@pytest.mark.stack
def test_a_job_whose_process_wants_more_than_it_may_fails_and_the_one_beside_it_goes_on(
    surroundings: pytest.MonkeyPatch,
) -> None:
    project = make_project()
    spec = _spec("Cut-v0", 128, 4, 8)
    needs = memory_of(spec)
    assert needs is not None
    limit_mb = needs.bytes_here // 2**20 + 1
    surroundings.setenv("STARLING_MAX_JOB_MEMORY_MB", str(limit_mb))
    with override_settings(STARLING_MAX_JOB_MEMORY_MB=limit_mb):
        job, other = make_job(project, spec=spec), make_job(project, spec=_spec("CartPole-v1", 64, 1, 1))
        own_mb = needs.shares[0] / 2**20
        with _peaks(b"run-job", job.pk.encode()) as peaks:
            _run_beside(job, other)
    assert other.observed == "succeeded", other.reason
    assert job.observed == "failed"
    assert "needs more memory" in job.reason
    assert "(STARLING_MAX_JOB_MEMORY_MB)" in job.reason
    assert job.crashes <= 1
    assert own_mb - 150 < max(peaks) < own_mb + _MARGIN_MB


@pytest.mark.slow
@pytest.mark.stack
def test_an_actor_that_grows_is_ended_and_its_job_says_so(surroundings: pytest.MonkeyPatch) -> None:
    project = make_project()
    limit_mb = 600
    surroundings.setenv("STARLING_MAX_JOB_MEMORY_MB", str(limit_mb))
    with override_settings(STARLING_MAX_JOB_MEMORY_MB=limit_mb):
        spec = _spec("Growing-v0", 4096, 1, 1)
        needs = memory_of(spec)
        assert needs is not None
        job, other = make_job(project, spec=spec), make_job(project, spec=_spec("CartPole-v1", 64, 1, 1))
        of_actor_mb = needs.shares[1] / 2**20
        with _peaks(b"cloud.workers.process", b"hungry_envs") as peaks:
            _run_beside(job, other)
    assert other.observed == "succeeded", other.reason
    assert (job.observed, job.crashes) == ("failed", 0)
    assert re.search(rf"worker process took .*\b{int(of_actor_mb):,} MB of memory", job.reason)
    assert max(peaks) < of_actor_mb + _MARGIN_MB


@pytest.mark.django_db
def test_a_process_that_the_system_killed_for_memory_says_so() -> None:
    job = make_job()
    assert take_lease(job_id=job.pk, owner="killed")
    Job.objects.filter(pk=job.pk).update(observed="running")
    record_exit(job_id=job.pk, owner="killed", code=-signal.SIGKILL, memory_ran_out=True)
    job.refresh_from_db()
    assert (job.observed, job.reason_code, job.crashes) == ("recovering", "crashed", 1)
    assert job.reason == Reason.KILLED_FOR_MEMORY.sentence


@pytest.mark.django_db
def test_one_that_someone_killed_does_not() -> None:
    job = make_job()
    assert take_lease(job_id=job.pk, owner="killed")
    Job.objects.filter(pk=job.pk).update(observed="running")
    record_exit(job_id=job.pk, owner="killed", code=-signal.SIGKILL)
    job.refresh_from_db()
    assert job.reason == Reason.PROCESS_DIED.change(how="killed by SIGKILL").sentence
