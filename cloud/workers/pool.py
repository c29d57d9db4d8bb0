"""A pool of worker processes: each call gives one execution, whatever happens to the workers.

One thread serves all sockets. It also starts the processes, because the kernel ties a worker's life to the thread that
started it, and this one lives as long as the pool.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloud import failures
from cloud.failures import Failure
from cloud.workers import frames
from cloud.workers.execution import Deliver, Execution
from cloud.workers.handle import DEFAULT_COMMAND, WorkerProcess
from cloud.workers.memory_watch import MemoryWatch
from training.engine.messages import Call
from training.functions.body import Result


@dataclass
class _Task:
    call: Call
    weights: bytes | None
    limit_s: float
    submitted_s: float
    begun_s: float = 0.0
    cold: bool = False

    @property
    def slot(self) -> int | None:
        return self.call.slot


class WorkerPool:
    """`count` workers with one call each at a time; other calls wait in order.

    A call goes to the worker that ran its slot last if that one is idle, as what it works on is warm there; it never
    waits for it. A worker that dies or takes too long is replaced and its call fails. A worker that fails to start
    three times in a row is given up; if none is left, calls fail with what a worker printed last.
    """

    def __init__(self, count: int, deliver: Deliver, command: Sequence[str] = DEFAULT_COMMAND) -> None:
        self._count = count
        self._command = tuple(command)
        self._deliver = deliver
        self._lock = threading.Lock()
        self._requests: deque[_Task | str] = deque()
        self._closing = False
        self._queue: deque[_Task] = deque()
        self._running: dict[WorkerProcess, _Task] = {}
        self._home_of_slot: dict[int, WorkerProcess] = {}
        self._workers: list[WorkerProcess] = []
        self._memory = MemoryWatch()
        self._broken: Failure | None = None
        self._selector = selectors.DefaultSelector()
        self._bell, self._bell_rope = socket.socketpair()
        self._bell.setblocking(False)
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._work, name="worker-pool", daemon=True)
        self._thread.start()

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        self._request(_Task(call, weights, limit_s, time.monotonic()))

    def cancel(self, call_id: str) -> None:
        self._request(call_id)

    def worker_pids(self) -> list[int]:
        """Return the workers' process ids, for tests and diagnosis."""
        return [worker.pid for worker in list(self._workers)]

    def pid_that_runs(self, call_id: str) -> int | None:
        """Return the process id of the worker that has this call, for tests and diagnosis."""
        running = list(self._running.items())
        return next((worker.pid for worker, task in running if task.call.id == call_id), None)

    def close(self) -> None:
        """Kill the workers. Calls that are queued or running get no execution."""
        with self._lock:
            self._closing = True
            with contextlib.suppress(OSError):
                self._bell_rope.send(b"!")
        self._thread.join()
        self._bell_rope.close()

    def _request(self, request: _Task | str) -> None:
        """Have the pool's thread begin a task, or cancel the call of this id."""
        with self._lock:
            if self._closing:
                return
            self._requests.append(request)
            if len(self._requests) == 1:
                self._bell_rope.send(b"!")

    # These run in the pool's thread only.

    def _work(self) -> None:
        try:
            self._workers = [WorkerProcess(number, self._command) for number in range(self._count)]
            for worker in self._workers:
                self._watch(worker)
            while not self._closing:
                self._turn()
        except Exception as error:
            self._fail_all(error)
        finally:
            for worker in self._workers:
                if worker.state != "broken":
                    worker.kill()
            self._selector.close()
            self._bell.close()

    def _turn(self) -> None:
        for key, events in self._selector.select(self._seconds_to_limit()):
            worker = key.data
            if worker is None:
                self._bell.recv(4096)
                continue
            if events & selectors.EVENT_WRITE:
                worker.send()
                self._watch(worker)
            if events & selectors.EVENT_READ:
                self._receive(worker)
        self._take_requests()
        self._enforce_limits()
        self._begin_queued()

    def _fail_all(self, error: Exception) -> None:
        """After an error of the pool itself: fail every call, now and later, so that none waits for ever."""
        self._broken = failures.from_exception(error)
        for task in self._running.values():
            self._finish(task, self._broken)
        self._running.clear()
        self._bell.setblocking(True)
        while not self._closing:
            self._take_requests()
            while self._queue:
                self._finish(self._queue.popleft(), self._broken)
            self._bell.recv(4096)

    def _take_requests(self) -> None:
        with self._lock:
            requests, self._requests = self._requests, deque()
        for request in requests:
            if isinstance(request, _Task):
                self._queue.append(request)
            else:
                self._stop(request)

    def _stop(self, call_id: str) -> None:
        for task in self._queue:
            if task.call.id == call_id:
                self._queue.remove(task)
                self._finish(task, failures.CANCELLED)
                return
        for worker, task in self._running.items():
            if task.call.id == call_id:
                self._replace(worker, failures.CANCELLED)
                return

    def _begin_queued(self) -> None:
        idle = [worker for worker in self._workers if worker.state == "idle"]
        if self._queue and not idle and all(worker.state == "broken" for worker in self._workers):
            why = Failure("worker_start", f"no worker starts: {self._workers[0].last_words}")
            while self._queue:
                self._finish(self._queue.popleft(), why)
        # Only calls that begin now are matched to warm workers: the order is kept, and none waits for a worker.
        going = [self._queue.popleft() for _ in range(min(len(idle), len(self._queue)))]
        homeless: list[_Task] = []
        for task in going:
            home = self._home_of_slot.get(task.slot) if task.slot is not None else None
            if home in idle:
                idle.remove(home)
                self._begin(home, task)
            else:
                homeless.append(task)
        for task in homeless:
            self._begin(idle.pop(0), task)

    def _begin(self, worker: WorkerProcess, task: _Task) -> None:
        task.begun_s = time.monotonic()
        task.cold = worker.calls_run == 0
        if task.slot is not None:
            self._home_of_slot[task.slot] = worker
        self._running[worker] = task
        worker.run(task.call, task.weights)
        self._watch(worker)

    def _receive(self, worker: WorkerProcess) -> None:
        messages = worker.receive()
        if messages is None:
            self._replace(worker, self._memory.failure_of_dead)
            return
        for message in messages:
            if isinstance(message, frames.Ready):
                continue
            task = self._running.pop(worker)
            if isinstance(message, frames.DoneFrame):
                result: Result | Failure = Result(message.payload, message.slot_state, message.usage)
            else:
                result = Failure(message.reason_code, message.reason)
            self._finish(task, result, message.run_s)
        self._watch(worker)

    def _enforce_limits(self) -> None:
        now_s = time.monotonic()
        late = [worker for worker, task in self._running.items() if task.begun_s + task.limit_s <= now_s]
        for worker in late:
            limit_s = self._running[worker].limit_s
            self._replace(worker, Failure("deadline", f"took longer than its deadline of {limit_s:g} s"))
        too_large = self._memory.too_large(worker.pid for worker in self._running)
        for worker in [worker for worker in self._running if worker.pid in too_large]:
            self._replace(worker, self._memory.failure())

    def _replace(self, worker: WorkerProcess, why: Failure | Callable[[str], Failure]) -> None:
        """Kill the worker, fail its call, and start another process. `why` may depend on how the worker ended."""
        self._selector.unregister(worker.socket)
        last_words = worker.kill()
        task = self._running.pop(worker, None)
        if task is not None:
            self._finish(task, why if isinstance(why, Failure) else why(last_words))
        worker.replace()
        if worker.state != "broken":
            self._watch(worker)

    def _watch(self, worker: WorkerProcess) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.sending else 0)
        key = self._selector.get_map().get(worker.socket)
        if key is None:
            self._selector.register(worker.socket, events, worker)
        elif key.events != events:
            self._selector.modify(worker.socket, events, worker)

    def _seconds_to_limit(self) -> float | None:
        if not self._running:
            return None
        due_s = min(task.begun_s + task.limit_s for task in self._running.values()) - time.monotonic()
        return max(0.0, min(due_s, self._memory.seconds_to_look))

    def _finish(self, task: _Task, result: Result | Failure, run_s: float | None = None) -> None:
        now_s = time.monotonic()
        begun_s = task.begun_s or now_s
        spent_s = now_s - begun_s
        ran_s = spent_s if run_s is None else min(run_s, spent_s)
        self._deliver(
            Execution(task.call.id, result, begun_s - task.submitted_s, ran_s, spent_s - ran_s, task.cold)
        )
