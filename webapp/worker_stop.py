"""How the worker stops (SIGTERM): its jobs are handed over, its processes end, and it is gone in time.

Celery waits for its tasks without limit, and one that films or measures takes minutes. Every task can be cut off,
because its row says what is to be done; those that have a process of their own end here and are asked for again.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from celery.signals import worker_init, worker_shutdown, worker_shutting_down

log = logging.getLogger(__name__)

GONE_WITHIN_S = 6.5
"""Shorter than the worker's grace in `manage.py up`, longer than its jobs need to leave (jobs/running/leaving.py)."""


class WorkerStop:
    """The end of one worker: what is to be done first, and which processes end with it."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._firsts: list[Callable[[], None]] = []
        self._processes: set[subprocess.Popen[str]] = set()

    @property
    def asked(self) -> bool:
        """Whether the worker is to stop."""
        return self._asked.is_set()

    def first(self, act: Callable[[], None]) -> Callable[[], None]:
        """Have this done as soon as the worker is to stop; may be used as a decorator."""
        self._firsts.append(act)
        return act

    @contextmanager
    def ends(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """While the block runs, the process is killed as soon as the worker is to stop."""
        with self._lock:
            self._processes.add(process)
            if self.asked:
                process.kill()
        try:
            yield
        finally:
            with self._lock:
                self._processes.discard(process)

    def ask(self) -> None:
        """To be called from a signal's handler: it only says that something is to be done."""
        self._asked.set()

    def carry_out(self, end: Callable[[int], object] = os._exit) -> None:
        """Wait until it is asked for, then end what runs, and at last this process if it is there still."""
        self._asked.wait()
        asked_s = time.monotonic()
        with self._lock:
            for process in self._processes:
                process.kill()
        for act in self._firsts:
            act()
        time.sleep(max(0.0, asked_s + GONE_WITHIN_S - time.monotonic()))
        log.info("The worker stops; what it was at is begun again from its row.")
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
    """All tasks are over. Tearing the interpreter down takes seconds on a busy machine, and keeps nothing."""
    if worker_stop.asked:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
