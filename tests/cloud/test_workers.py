"""Worker processes: what happens when they are slow, die, never start, or lose their parent."""

from __future__ import annotations

import hashlib
import os
import queue
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloud.failures import Failure
from cloud.workers.execution import Execution
from cloud.workers.frames import FrameError, Inbox, Ready, from_worker, pack
from cloud.workers.pool import WorkerPool
from rig.servers import wait_until
from tests.cloud import calls
from tests.cloud.test_platform_contract import alive
from training.engine.messages import BlobRef, Call
from training.functions.body import Result

WAIT_S = 60.0


class Pool:
    """A pool and the box into which it delivers."""

    def __init__(self, count: int, command: list[str] | None = None) -> None:
        self.box: queue.SimpleQueue[Execution] = queue.SimpleQueue()
        self.pool = (
            WorkerPool(count, self.box.put) if command is None else WorkerPool(count, self.box.put, command)
        )
        self.weights = calls.weights()
        digest = hashlib.sha256(self.weights).hexdigest()
        self.ref = BlobRef(version=0, sha256=digest, byte_count=len(self.weights))

    def submit(self, call: Call, limit_s: float = 60.0) -> None:
        self.pool.submit(call, self.weights, limit_s)

    def run(self, name: str, **request: int) -> Execution:
        self.submit(calls.rollout(name, self.ref, **request))
        return self.take()

    def take(self) -> Execution:
        return self.box.get(timeout=WAIT_S)

    def pid_that_runs(self, call_id: str) -> int:
        """Wait until a worker has the call: one killed before that is replaced, and the next one runs it."""
        wait_until(lambda: self.pool.pid_that_runs(call_id), within_s=WAIT_S, what=f"{call_id} to run")
        pid = self.pool.pid_that_runs(call_id)
        assert pid is not None
        return pid


@pytest.fixture
def make_pool() -> Iterator[Callable[..., Pool]]:
    pools: list[Pool] = []

    def make(count: int, command: list[str] | None = None) -> Pool:
        pools.append(Pool(count, command))
        return pools[-1]

    yield make
    for pool in pools:
        pool.pool.close()


def test_calls_queue_while_workers_start(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(2)
    for number in range(10):
        pool.submit(calls.rollout(f"c{number}", pool.ref, slot=number))
    ended = [pool.take() for _ in range(10)]
    assert all(isinstance(execution.result, Result) for execution in ended)
    assert sum(execution.cold for execution in ended) <= 2


def test_a_slot_goes_back_to_its_warm_worker(make_pool: Callable[..., Pool]) -> None:
    """With two workers and two slots no environment is made twice: only two calls are cold."""
    pool = make_pool(2)
    for number in range(6):
        for slot in (0, 1) if number % 2 else (1, 0):
            pool.submit(calls.rollout(f"c{number}-{slot}", pool.ref, slot=slot))
        for _ in range(2):
            assert isinstance(pool.take().result, Result)


def test_a_call_over_its_limit_fails_and_its_worker_is_replaced(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(1)
    pool.run("warm")
    before = pool.pool.worker_pids()
    pool.submit(calls.rollout("long", pool.ref, steps=10_000_000), limit_s=0.2)
    execution = pool.take()
    assert isinstance(execution.result, Failure)
    assert execution.result.code == "deadline"
    assert "0.2 s" in execution.result.reason
    assert execution.run_s >= 0.2
    assert isinstance(pool.run("after").result, Result)
    assert not alive(before[0])


def test_a_worker_that_dies_gives_a_failure_and_is_replaced(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(1)
    pool.run("warm")
    pool.submit(calls.rollout("killed", pool.ref, steps=10_000_000))
    os.kill(pool.pid_that_runs("killed"), signal.SIGKILL)
    result = pool.take().result
    assert isinstance(result, Failure)
    assert result.code == "worker_died"
    assert "SIGKILL" in result.reason
    assert isinstance(pool.run("after").result, Result)


def test_an_idle_worker_that_dies_is_replaced(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(1)
    pool.run("warm")
    os.kill(pool.pool.worker_pids()[0], signal.SIGKILL)
    results = [pool.run(f"c{number}").result for number in range(2)]
    # The first may have been handed over before the death was noticed.
    assert isinstance(results[1], Result)


def test_workers_that_never_start_say_why(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(2, [sys.executable, "-c", "import sys; sys.exit('no such worker')"])
    for number in range(3):
        result = pool.run(f"c{number}").result
        assert isinstance(result, Failure)
        assert result.code == "worker_start"
        assert "no such worker" in result.reason


def test_cancel_of_queued_and_running(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(1)
    pool.run("warm")
    pool.submit(calls.rollout("running", pool.ref, steps=10_000_000))
    pool.submit(calls.rollout("queued", pool.ref, steps=10_000_000))
    pool.pool.cancel("queued")
    assert pool.take().call_id == "queued"
    pool.pool.cancel("running")
    execution = pool.take()
    assert execution.call_id == "running"
    assert execution.result == Failure("cancelled", "cancelled")
    assert isinstance(pool.run("after").result, Result)


def test_actors_never_load_torch(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(1)
    pool.run("rollout")
    pool.submit(calls.evaluation("evaluation", pool.ref))
    assert isinstance(pool.take().result, Result)
    maps = Path(f"/proc/{pool.pool.worker_pids()[0]}/maps").read_text()
    assert "numpy" in maps
    assert "torch" not in maps


def test_large_states_travel_both_ways(make_pool: Callable[..., Pool]) -> None:
    """More than any socket buffer holds, so that both sides meet partial writes."""
    pool = make_pool(1)
    pool.submit(calls.rollout("c", pool.ref, steps=40_000, inputs=(bytes(3_000_000),)))
    result = pool.take().result
    assert isinstance(result, Result), result
    assert len(result.payload) > 500_000


def test_workers_die_with_a_parent_that_is_killed() -> None:
    program = (
        "import sys, time\n"
        "from cloud.workers.pool import WorkerPool\n"
        "pool = WorkerPool(2, print)\n"
        "from tests.cloud.test_workers import Pool\n"
        "mine = Pool(2)\n"
        "mine.run('a'); mine.run('b')\n"
        "print(*mine.pool.worker_pids(), *pool.worker_pids(), flush=True)\n"
        "time.sleep(600)\n"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root, env={"PYTHONPATH": str(root)}
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 4
        descriptors = [os.pidfd_open(pid) for pid in pids]
        parent.kill()
        parent.wait()
    for descriptor, pid in zip(descriptors, pids, strict=True):
        # A process's descriptor becomes readable when it ends.
        assert select.select([descriptor], [], [], WAIT_S)[0], f"worker {pid} lives on"
        os.close(descriptor)


def test_frames_survive_any_chopping() -> None:
    data = pack(Ready()) * 3
    inbox = Inbox()
    seen = []
    for at in range(len(data)):
        inbox.feed(data[at : at + 1])
        seen += [from_worker(body) for body in inbox.bodies()]
    assert seen == [Ready()] * 3


def test_a_frame_that_claims_too_much_is_refused() -> None:
    inbox = Inbox()
    inbox.feed(b"\xff\xff\xff\xff")
    with pytest.raises(FrameError, match="4294967295"):
        list(inbox.bodies())
