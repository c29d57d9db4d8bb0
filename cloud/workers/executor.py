"""Runs the bodies of calls, whatever clock and price a platform gives them.

`LocalExecutor` has worker processes for actor calls and one thread of this process for the learner's. The local
platform and the simulated cloud both use it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

from cloud.workers.execution import Deliver, Execution
from cloud.workers.learner_thread import LearnerThread, NoLearner
from cloud.workers.pool import WorkerPool
from training.engine.messages import Call


class Executor(Protocol):
    """Runs calls; each gives exactly one execution, in the order in which they end."""

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        """Accept a call and return at once. It may run for `limit_s` of real time, then it fails ("deadline")."""

    def take(self, timeout_s: float) -> Execution | None:
        """Return the next execution to end, or None after `timeout_s`."""

    def cancel(self, call_id: str) -> None:
        """Stop a call, queued or running. Its execution follows: failed with "cancelled", or as it ended."""

    def close(self) -> None:
        """Stop everything and leave no process behind. Safe to call twice."""


class LocalExecutor:
    """Actor calls in `workers` processes, learner calls one after the other in a thread of this process."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        learner: Callable[[Deliver], LearnerThread | NoLearner] = LearnerThread,
    ) -> None:
        self._finished: queue.SimpleQueue[Execution] = queue.SimpleQueue()
        self._pool = WorkerPool(workers or cores(), self._finished.put)
        self._learner = learner(self._finished.put)

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        if call.where == "learner":
            self._learner.submit(call, weights, limit_s)
        else:
            self._pool.submit(call, weights, limit_s)

    def take(self, timeout_s: float) -> Execution | None:
        end_s = time.monotonic() + timeout_s
        while True:
            self._learner.enforce_limit()
            wait_s = min(end_s - time.monotonic(), self._learner.seconds_to_limit())
            try:
                return self._finished.get(timeout=min(max(0.0, wait_s), threading.TIMEOUT_MAX))
            except queue.Empty:
                if time.monotonic() >= end_s:
                    return None

    def cancel(self, call_id: str) -> None:
        self._learner.cancel(call_id)
        self._pool.cancel(call_id)

    def worker_pids(self) -> list[int]:
        return self._pool.worker_pids()

    def close(self) -> None:
        self._pool.close()
        self._learner.close()


def cores() -> int:
    """Return how many cores this process may use; in a container, fewer than the machine has."""
    if sys.platform.startswith("linux"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
