"""Start times of fresh processes: a ready worker, its first environment, a learner with torch loaded."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from typing import Any

from cloud.workers import frames
from cloud.workers.handle import WorkerProcess

_READY_S = 60.0
_ENVIRONMENT = """
import sys, time
import training.functions.evaluate, training.functions.rollout
from training.rl.environments.making import make_copies
from training.rl.environments.model import EnvironmentSpec
began_s = time.perf_counter()
make_copies(EnvironmentSpec(id=sys.argv[1]), 1).begin([0])
print(time.perf_counter() - began_s)
"""
_TORCH = """
import time
began_s = time.perf_counter()
from training.functions.run import warm_learner
warm_learner()
print(time.perf_counter() - began_s)
"""


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return wall-clock seconds, `arguments["repeats"]` of each. The first of each reads from disk, and is left out."""
    repeats = range(arguments["repeats"] + 1)
    return {
        "ready_s": [_ready_s() for _ in repeats][1:],
        "first_environment_s": {
            name: [_printed_s(_ENVIRONMENT, name) for _ in repeats][1:] for name in arguments["environments"]
        },
        "torch_s": [_printed_s(_TORCH) for _ in repeats][1:],
    }


def _ready_s() -> float:
    """Return the seconds from starting a worker process until it says that it takes calls."""
    began_s = time.perf_counter()
    worker = WorkerProcess(0)
    try:
        while True:
            if not select.select([worker.socket], [], [], _READY_S)[0]:
                raise TimeoutError(f"a worker was not ready within {_READY_S:g} s")
            messages = worker.receive()
            if messages is None:
                raise RuntimeError(f"a worker did not start: {worker.kill()}")
            if any(isinstance(message, frames.Ready) for message in messages):
                return time.perf_counter() - began_s
    finally:
        if worker.last_words == "":
            worker.kill()


def _printed_s(program: str, *arguments: str) -> float:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.splitlines()[-1])
