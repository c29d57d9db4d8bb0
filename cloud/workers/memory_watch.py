"""Workers that take more memory than they may are ended, and those that the system ended for it are recognised.

The pool looks at what is resident. A limit by the kernel would count what libraries only reserve: MuJoCo's take up
to 60 MB a copy that they never write.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from cloud.failures import Failure
from training.engine.memory_limit import MEGABYTE, kills_for_memory, resident_bytes

LOOK_EVERY_S = 0.1
_allowed_bytes = 0


def allow_workers(limit_bytes: int) -> None:
    """From now on no worker of this process's pools may take more memory than that; 0: as much as there is."""
    global _allowed_bytes
    _allowed_bytes = limit_bytes


class MemoryWatch:
    """The look of one pool at its workers."""

    def __init__(self) -> None:
        self._looked_s = -math.inf
        self._kills = kills_for_memory()

    @property
    def seconds_to_look(self) -> float:
        """Return when to look next; infinite where nothing is limited."""
        if not _allowed_bytes:
            return math.inf
        return max(0.0, self._looked_s + LOOK_EVERY_S - time.monotonic())

    def too_large(self, pids: Iterable[int]) -> set[int]:
        """Return those processes that have more than they may, at most once in `LOOK_EVERY_S`."""
        if self.seconds_to_look > 0.0:
            return set()
        self._looked_s = time.monotonic()
        return {pid for pid in pids if resident_bytes(pid) > _allowed_bytes}

    def failure(self) -> Failure:
        return Failure(
            "memory",
            f"the worker process took more than the {_allowed_bytes // MEGABYTE:,} MB of memory that it may have here."
            " Ask for fewer steps or rows a call, fewer copies of what it steps, or fewer workers that share",
        )

    def failure_of_dead(self, last_words: str) -> Failure:
        """Return why a worker's call has no result, if its process ended by itself."""
        before, self._kills = self._kills, kills_for_memory()
        if self._kills > before and "SIGKILL" in last_words:
            return Failure(
                "memory",
                "the system ended the worker process because this machine's memory ran out. Run fewer jobs at once, or"
                " ask for fewer workers, or for less in each call",
            )
        return Failure("worker_died", f"the worker process {last_words}")
