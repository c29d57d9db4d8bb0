"""How the worker stops on SIGTERM: it hands its jobs over, ends its processes, and exits in time.

Celery waits for its tasks without limit, and one that films or measures takes minutes. Every task can be cut off,
because its row says what is to be done; those that have a process of their own end here and are started again.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from celery.signals import worker_init, worker_shutdown, worker_shutting_down

log = logging.getLogger(__name__)

GONE_WITHIN_S = 6.5
"""Shorter than the worker's grace in `manage.py up`, longer than its jobs need to leave (jobs/running/leaving.py)."""


class WorkerStop:
    """The stop of one worker: what it does first, and which processes end with it."""

    def __init__(self) -> None:
        self.requested = False
        self._requests: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        self._firsts: list[Callable[[], None]] = []
        self._processes: set[subprocess.Popen[str]] = set()

    def first(self, act: Callable[[], None]) -> Callable[[], None]:
        """Register a function to call as soon as the worker is to stop; also a decorator."""
        self._firsts.append(act)
        return act

    @contextmanager
    def ends(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """While the block runs, the process is killed as soon as the worker is to stop."""
        with self._lock:
            self._processes.add(process)
            if self.requested:
                process.kill()
        try:
            yield
        finally:
            with self._lock:
                self._processes.discard(process)

    def ask(self) -> None:
        """Request the stop. Safe in a signal handler, and in one that interrupts it: this takes no lock of Python's."""
        self.requested = True
        self._requests.put(None)

    def carry_out(self, end: Callable[[int], object] = os._exit) -> None:
        """Wait for the request, end the registered processes, and then this process if it still runs."""
        self._requests.get()
        began_s = time.monotonic()
        with self._lock:
            for process in self._processes:
                process.kill()
        for act in self._firsts:
            act()
        time.sleep(max(0.0, began_s + GONE_WITHIN_S - time.monotonic()))
        log.info("The worker stops; unfinished work starts again from its rows.")
        end(0)


worker_stop = WorkerStop()


@worker_init.connect
def _be_ready_to_stop(**_: object) -> None:
    threading.Thread(target=worker_stop.carry_out, name="worker stop", daemon=True).start()


@worker_shutting_down.connect
def _stop(**_: object) -> None:
    worker_stop.ask()


@worker_shutdown.connect
def _leave(**_: object) -> None:
    """Exit at once, as all tasks have ended: tearing the interpreter down takes seconds on a busy machine."""
    if worker_stop.requested:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
