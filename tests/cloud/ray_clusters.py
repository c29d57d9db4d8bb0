"""Ray clusters on this machine for tests, as far as Ray knows of several machines: each has its own raylet and object
store. And jobs on them, each in a process of its own, as a process can be attached only once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cloud import processes

ROOT = Path(__file__).resolve().parent.parent.parent
WAIT_S = 120.0

_CLUSTER = """
import os, signal, sys
from ray.cluster_utils import Cluster
from tests.cloud import processes
first, *others = map(int, sys.argv[1:])
store = {"object_store_memory": 128 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args={**store, "num_cpus": first, "include_dashboard": False})
machines = [cluster.add_node(**store, num_cpus=cpus) for cpus in others]
print("address", cluster.address, flush=True)
for line in sys.stdin:
    if line == "lose\\n":
        machine = machines.pop()
        (raylet,) = machine.all_processes["raylet"]
        pids = [raylet.process.pid, *processes.below(raylet.process.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        cluster.remove_node(machine, allow_graceful=False)
        print("lost", flush=True)
cluster.shutdown()
"""

_JOB = """
import json, sys, threading
from decimal import Decimal
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.ray_cluster import RayOptions
from tests.training.runs import Forgetful
from tests.training.specs import tiny
from training.engine.train import train
from training.engine.messages import CallFailed, RoundFinished, Tick
from training.engine.ports import Control

settings = json.loads(sys.argv[1])
spec = tiny(stop={"rounds": 100_000}, **settings.pop("training", {}))
options = RayOptions(**settings, node_usd_per_hour=Decimal(3600), learner_usd_per_hour=Decimal(3600))
inner = options.open()
ledger = MemoryLedger(10**18)
platform = MeteredPlatform(inner, ledger, options.tariff(PriceBook.load(), 1769))
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
control = lambda: Control(desired="cancelled" if ended.is_set() else "run")
try:
    for event in train(spec, platform=platform, checkpoints=Forgetful(), control=control):
        if isinstance(event, (RoundFinished, Tick, CallFailed)):
            spend = platform.spend()
            said = {
                "round": event.report.round_no if isinstance(event, RoundFinished) else None,
                "failed": event.reason if isinstance(event, CallFailed) else None,
                "words": inner.throttling_reasons(),
                "money": spend.spent_picodollars + spend.reserved_picodollars,
            }
            print(json.dumps(said), flush=True)
finally:
    platform.close()
print(json.dumps({"closed": ledger.spend().spent_picodollars}), flush=True)
"""

# As `ray start` does: a driver sends the token in its home folder, and so do the machines.
_VARIABLES = {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
if (Path.home() / ".ray" / "auth_token").exists():
    _VARIABLES["RAY_AUTH_MODE"] = "token"


def _process(program: str, *words: str, log: Path) -> subprocess.Popen[str]:
    with open(log, "w") as output:
        return subprocess.Popen(
            [sys.executable, "-c", program, *words],
            cwd=ROOT,
            env={**os.environ, **_VARIABLES},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=WAIT_S)


class TestCluster:
    """A running cluster. It ends with the `with` of `cluster_of`."""

    __test__ = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._read("address")

    def lose_machine(self) -> None:
        """End the newest machine and all its processes at once."""
        assert self._process.stdin is not None
        self._process.stdin.write("lose\n")
        self._process.stdin.flush()
        self._read("lost")

    def machines_with_actors(self, *, at_work: bool = False) -> int:
        """Return how many machines have actors (that answer a call): the parents of the processes that actors are."""
        title = b"RayActor.answer" if at_work else b"RayActor"
        pids = [pid for pid in processes.below(self._process.pid) if title in command_of(pid)]
        return len({int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids})

    def _read(self, word: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise AssertionError("the cluster ended")


@contextmanager
def cluster_of(*cpus: int, folder: Path) -> Iterator[TestCluster]:
    """A cluster of machines with so many cores each."""
    process = _process(_CLUSTER, *map(str, cpus), log=folder / "cluster.log")
    try:
        yield TestCluster(process)
    finally:
        _end(process)
        assert process.stdout is not None
        process.stdout.close()


class TestJob:
    """A training that runs until `end`. Its machine and its learner cost a dollar a second each."""

    __test__ = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def rounds(self) -> int:
        return max((one["round"] for one in list(self.said) if one.get("round")), default=0)

    def wait(self, what: str, until: Callable[[], object], within_s: float = WAIT_S) -> float:
        """Wait until it holds, and return the seconds that took."""
        began_s = time.monotonic()
        while not until():
            passed_s = time.monotonic() - began_s
            assert passed_s < within_s, f"{what} within {within_s:g} s; last: {self.said[-3:]}"
            time.sleep(0.05)
        return time.monotonic() - began_s

    def goes_on(self, rounds: int = 2, within_s: float = WAIT_S) -> float:
        """Wait for so many more rounds, and return the seconds that took."""
        before = self.rounds
        return self.wait(f"{rounds} more rounds", lambda: self.rounds >= before + rounds, within_s)

    def rounds_per_s(self, over_s: float) -> float:
        """Watch it for so long, and return how many rounds it made a second."""
        before, began_s = self.rounds, time.monotonic()
        self.wait("the time", lambda: time.monotonic() - began_s >= over_s)
        return (self.rounds - before) / (time.monotonic() - began_s)

    def end(self) -> int:
        """End it, and return what it spent."""
        _end(self._process)
        self._reader.join(WAIT_S)
        return int(self.said[-1]["closed"])

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    self.said.append(json.loads(line))


@contextmanager
def job_on(cluster: TestCluster, folder: Path, **settings: Any) -> Iterator[TestJob]:
    """A job with these options, and `training` as changes of its spec. It ends with the `with` at the latest."""
    document = json.dumps({"address": cluster.address, **settings})
    job = TestJob(_process(_JOB, document, log=folder / f"job-{time.monotonic_ns()}.log"))
    try:
        yield job
    finally:
        if job._process.poll() is None:
            job.end()


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
