"""The learner's calls, one after the other in a thread of the job's own process.

A thread cannot be killed. So a call that is cancelled or takes too long is abandoned: its execution is delivered at
once, its thread ends by itself when the body returns, and the next call gets a fresh thread.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass

from cloud import failures
from cloud.failures import Failure
from cloud.workers.execution import Deliver, Execution
from training.engine.messages import Call
from training.functions.body import Result, WarmCache
from training.functions.run import execute

_JOIN_S = 5.0


@dataclass
class _Task:
    call: Call
    weights: bytes | None
    limit_s: float
    submitted_s: float
    begun_s: float | None = None


class LearnerThread:
    """Takes calls in order. Torch is imported by the first call that needs it: most learn without, and start sooner."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._changed = threading.Condition()
        self._queue: deque[_Task] = deque()
        self._running: _Task | None = None
        self._closed = False
        self._start()

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        with self._changed:
            self._queue.append(_Task(call, weights, limit_s, time.monotonic()))
            self._changed.notify_all()

    def cancel(self, call_id: str) -> None:
        with self._changed:
            for task in self._queue:
                if task.call.id == call_id:
                    self._queue.remove(task)
                    self._finish(task, failures.CANCELLED)
                    return
            if self._running is not None and self._running.call.id == call_id:
                self._abandon(self._running, failures.CANCELLED)

    def seconds_to_limit(self) -> float:
        """Return how long the running call may still take; infinite if none runs."""
        task = self._running
        if task is None or task.begun_s is None:
            return math.inf
        return max(0.0, task.begun_s + task.limit_s - time.monotonic())

    def enforce_limit(self) -> None:
        with self._changed:
            task = self._running
            if task is not None and self.seconds_to_limit() <= 0.0:
                self._abandon(
                    task, Failure("deadline", f"took longer than its deadline of {task.limit_s:g} s")
                )

    def close(self) -> None:
        """Forget what is queued or running and let the thread end."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._running = None
            self._changed.notify_all()
        self._thread.join(_JOIN_S)

    def _start(self) -> None:
        # A daemon: a long update must not keep the process alive.
        self._thread = threading.Thread(target=self._work, name="learner", daemon=True)
        self._thread.start()

    def _abandon(self, task: _Task, failure: Failure) -> None:
        self._running = None
        self._finish(task, failure)
        self._start()

    def _work(self) -> None:
        me = threading.current_thread()
        warm_cache = WarmCache()
        while (task := self._next_task(me)) is not None:
            try:
                result: Result | Failure = execute(task.call, task.weights, warm_cache)
            except Exception as error:
                result = failures.from_exception(error)
                warm_cache = WarmCache()
            with self._changed:
                if self._running is not task:
                    return
                self._running = None
                self._finish(task, result)

    def _next_task(self, me: threading.Thread) -> _Task | None:
        with self._changed:
            while not self._queue:
                if self._closed or self._thread is not me:
                    return None
                self._changed.wait()
            task = self._running = self._queue.popleft()
            task.begun_s = time.monotonic()
            return task

    def _finish(self, task: _Task, result: Result | Failure) -> None:
        now_s = time.monotonic()
        begun_s = now_s if task.begun_s is None else task.begun_s
        self._deliver(Execution(task.call.id, result, begun_s - task.submitted_s, now_s - begun_s))


class NoLearner:
    """A learner for platforms that only call actors: it has no thread and loads no torch."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        self._deliver(Execution(call.id, Failure("error", "there is no learner here"), 0.0, 0.0))

    def cancel(self, call_id: str) -> None:
        """Nothing runs."""

    def seconds_to_limit(self) -> float:
        return math.inf

    def enforce_limit(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing runs."""
