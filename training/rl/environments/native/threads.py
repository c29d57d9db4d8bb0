"""Threads that step copies beside the calling one.

They last, and are handed each step by a lock: a pool's queue and futures would take some 40 us more of each step.
"""

from __future__ import annotations

from collections.abc import Callable
from os import sched_yield
from threading import Lock, Thread

_LOOKS = 200
"""How often the caller looks whether a helper is done before it sleeps, for 0.15 ms in all: to wake takes 20 us and
more where machines are virtual. In between it gives its core to whoever wants it."""

_idle: list[Helper] = []


class Helper:
    """A thread that does what it is given, one call after the other, for whoever took it."""

    def __init__(self) -> None:
        self._given, self._done = Lock(), Lock()
        self._given.acquire()
        self._done.acquire()
        self._work: Callable[[], None] | None = None
        self._error: BaseException | None = None
        Thread(target=self._serve, name="copies", daemon=True).start()

    def begin(self, work: Callable[[], None]) -> None:
        self._work = work
        self._given.release()

    def end(self) -> BaseException | None:
        """Wait until the work is done, unless it has not begun yet: then leave it. Return what it raised."""
        if not self._given.acquire(blocking=False):
            self._await()
        error, self._work, self._error = self._error, None, None
        return error

    def _await(self) -> None:
        for _ in range(_LOOKS):
            if self._done.acquire(blocking=False):
                return
            sched_yield()
        self._done.acquire()

    def _serve(self) -> None:
        while True:
            self._given.acquire()
            try:
                if self._work is not None:
                    self._work()
            except BaseException as error:
                self._error = error
            self._done.release()


def share(work: Callable[[], None], threads: int) -> None:
    """Do `work` in the calling thread and in helpers at the same time. Helpers that wake too late are left out."""
    helpers = [_taken() for _ in range(threads - 1)]
    for helper in helpers:
        helper.begin(work)
    errors: list[BaseException | None] = []
    try:
        work()
    finally:
        errors = [helper.end() for helper in helpers]
        _idle.extend(helpers)
    for error in errors:
        if error is not None:
            raise error


def _taken() -> Helper:
    """Return a helper that nobody has taken."""
    try:
        return _idle.pop()
    except IndexError:
        return Helper()
