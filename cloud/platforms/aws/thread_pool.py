"""Threads that each wait for one function: started on demand, as many as may run at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Task = TypeVar("Task")


class ThreadPool(Generic[Task]):
    """Runs `work`, which must not raise, for each task in the order of submission."""

    def __init__(self, most: int, work: Callable[[Task], None]) -> None:
        self._most = most
        self._work = work
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._closed = False

    def submit(self, task: Task) -> None:
        with self._lock:
            if self._closed:
                return
            self._tasks.put(task)
            if self._idle >= self._tasks.qsize() or self._threads >= self._most:
                return
            self._threads += 1
            number = self._threads
        # A daemon: waiting for an answer must not keep the process alive.
        threading.Thread(target=self._run, name=f"lambda-{number}", daemon=True).start()

    def close(self) -> None:
        """Take no more tasks. Idle threads end now; threads that wait for an answer end when it comes."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._tasks.put(None)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            task = self._tasks.get()
            with self._lock:
                self._idle -= 1
            if task is None:
                return
            self._work(task)
