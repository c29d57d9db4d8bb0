"""A call's deadline, enforced in the process that runs it.

First an alarm in the main thread raises `DeadlineExceeded`, which ends the call with a reason. It rings again and
again, because the interpreter drops what is raised in a destructor or while it collects garbage; but not while its
exception is on its way, so that the body can clean up. If the body does not return even so, it is stuck in foreign
code: then the process writes to its log where it is stuck, and ends. A thread of the interpreter does that, without
Python's global lock.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from types import FrameType, TracebackType

GRACE_S = 2.0
_AGAIN_S = 0.25
# The log of such a process has this, followed by the place where it was stuck.
LAST_WORDS = "Timeout ("


class DeadlineExceeded(BaseException):
    """The call took too long. Not an Exception, so that no `except Exception` of what it runs catches it."""


class Watchdog:
    """`with Watchdog(2.5): …` — the block, or its process, ends soon after so many seconds."""

    def __init__(self, limit_s: float, *, grace_s: float = GRACE_S) -> None:
        self._limit_s = max(0.001, limit_s)
        self._grace_s = grace_s
        self._alarmed = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        # Outside the main thread there is no alarm, so the process ends at the limit itself.
        hard_s = self._limit_s + (self._grace_s if self._alarmed else 0.0)
        faulthandler.dump_traceback_later(hard_s, exit=True, file=sys.__stderr__ or sys.stderr)
        if self._alarmed:
            self._before = signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, self._limit_s, _AGAIN_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop the alarm. Call it when you catch `DeadlineExceeded`, as an alarm may ring while the block is left."""
        if self._alarmed:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)
        faulthandler.cancel_dump_traceback_later()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if isinstance(sys.exception(), DeadlineExceeded):
            return
        raise DeadlineExceeded(f"took longer than its deadline of {self._limit_s:g} s")
