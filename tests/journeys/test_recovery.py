"""A real job under a real worker, while things die: it ends as if nothing had happened.

Synchronous runs are repeatable, so "as if nothing had happened" is measured: the last checkpoint holds the same
learner, weights and environments, byte for byte, as that of a run no one disturbed.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
import redis

from rig.servers import reserved_port, server_process, wait_until
from tests.factories import make_job, make_spec
from tests.webapp.bookkeeping import assert_whole
from training.engine.checkpoints import FileCheckpointStore, Progress
from webapp.jobs.models import Job
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.running.headless import Headless
from webapp.processes.embedded_valkey import embedded_valkey

pytestmark = [pytest.mark.slow, pytest.mark.stack, pytest.mark.django_db(transaction=True)]

_ROUNDS = 32


def _spec() -> Any:
    """Some seconds of work, with a checkpoint seldom enough that a death costs rounds."""
    return make_spec(
        training__scaling__actors=2,
        training__rollout__steps_per_call=64,
        training__stop={"rounds": _ROUNDS, "env_steps": None},
        training__checkpoints={"every_rounds": 5},
        training__evaluation={"every_rounds": 16, "episodes": 1},
        platform__workers=1,
    )


def _learned(folder: Path) -> tuple[Any, ...]:
    """What the last checkpoint holds, without the times it took."""
    store = FileCheckpointStore(folder)
    name = store.names()[-1]
    assert name.endswith(f"{_ROUNDS:08d}.checkpoint")
    progress = Progress.decode(store.load(name), _spec().training)
    return (
        progress.learner,
        progress.weights,
        progress.slot_states,
        progress.total_progress,
        progress.evaluation_means,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    folder = tmp_path_factory.mktemp("undisturbed")
    for _ in Headless(_spec(), checkpoints=folder).events():
        pass
    return _learned(folder)


class Stack:
    """Worker and beat on this test's database, and a job."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment = environment
        self.log = log
        self.job = make_job(spec=_spec())

    @contextmanager
    def worker(self) -> Iterator[Popen[bytes]]:
        ready = self._ready()
        command = [
            "-A",
            "webapp.celery",
            "worker",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
        with self._celery(*command) as process:
            wait_until(lambda: self._ready() > ready, within_s=120, what="the worker is ready")
            yield process

    def beat(self) -> Any:
        return self._celery("-A", "webapp.celery", "beat", "--pidfile=")

    def _celery(self, *arguments: str) -> Any:
        command = [sys.executable, "-m", "celery", "--quiet", *arguments]
        return server_process(command, environment=self.environment, log=self.log)

    def _ready(self) -> int:
        return self.log.read_text().count("worker is ready") if self.log.exists() else 0

    def wait_for_round(self, number: int) -> None:
        wait_until(lambda: self._job().round_no >= number, within_s=120, what=f"round {number}")

    def wait_for_end(self, within_s: float = 240) -> None:
        wait_until(lambda: self._job().finished_at is not None, within_s=within_s, what="the job ends")

    def _job(self) -> Job:
        self.job.refresh_from_db()
        return self.job

    def processes(self) -> list[int]:
        """Those that run the job."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"run-job" in words and self.job.pk.encode() in words:
                found.append(int(folder.name))
        return found

    def assert_as_if_nothing_happened(self, undisturbed: tuple[Any, ...]) -> None:
        job = self._job()
        assert (job.observed, job.reason_code, job.round_no) == ("succeeded", "rounds", _ROUNDS), job.reason
        assert_whole(job)
        assert job.account.reserved_picodollars == 0
        assert _learned(checkpoint_folder(job.pk)) == undisturbed


@pytest.fixture
def stack(service_environment: dict[str, str], valkey: str, tmp_path: Path) -> Stack:
    return Stack(service_environment, tmp_path / "worker.log")


def test_the_jobs_process_is_killed(stack: Stack, undisturbed: tuple[Any, ...]) -> None:
    with stack.worker():
        stack.wait_for_round(9)
        (process,) = stack.processes()
        os.kill(process, signal.SIGKILL)
        killed_s = time.monotonic()
        wait_until(
            lambda: stack.job.events.filter(kind="started").count() == 2,
            within_s=90,
            what="the job goes on from its checkpoint",
        )
        print(f"went on after {time.monotonic() - killed_s:.1f} s")
        stack.wait_for_end()
    stack.assert_as_if_nothing_happened(undisturbed)
    resumed = stack.job.events.get(kind="resumed").payload
    assert resumed["from_round"] % 5 == 0
    assert 5 <= resumed["from_round"] <= resumed["repeated_to"]
    crashed = stack.job.events.get(payload__reason_code="crashed").payload
    assert "killed by SIGKILL" in crashed["text"]


def test_the_worker_is_killed(stack: Stack, undisturbed: tuple[Any, ...]) -> None:
    with stack.beat():
        with stack.worker() as worker:
            stack.wait_for_round(9)
            worker.kill()
            worker.wait()
            killed_s = time.monotonic()
            wait_until(
                lambda: not stack.processes(), within_s=30, what="the job's process dies with its worker"
            )
        with stack.worker():
            wait_until(
                lambda: stack.job.events.filter(kind="started").count() == 2,
                within_s=90,
                what="the job goes on from its checkpoint",
            )
            print(f"went on after {time.monotonic() - killed_s:.1f} s")
            stack.wait_for_end()
    stack.assert_as_if_nothing_happened(undisturbed)


def test_redis_is_flushed_and_killed(stack: Stack, undisturbed: tuple[Any, ...], tmp_path: Path) -> None:
    server = embedded_valkey(tmp_path / "valkey", port=reserved_port(), password="")
    stack.environment = {**stack.environment, "REDIS_URL": server.url}
    with ExitStack() as services:
        first = services.enter_context(ExitStack())
        first.enter_context(server_process(server.command))
        wait_until(server.answers, within_s=60, what="Valkey answers")
        services.enter_context(stack.beat())
        services.enter_context(stack.worker())
        stack.wait_for_round(6)
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        stack.wait_for_round(12)
        first.close()
        stack.wait_for_round(18)
        services.enter_context(server_process(server.command))
        stack.wait_for_end()
        stack.assert_as_if_nothing_happened(undisturbed)
        assert stack.job.lease_epoch == 1, "no one had to start it again"
        # The worker is back at work, too: a job whose message never arrived is found and run.
        later = make_job(stack.job.project, stack.job.created_by, spec=_spec())
        wait_until(
            lambda: later.events.filter(kind="started").exists(), within_s=120, what="a later job is run"
        )
