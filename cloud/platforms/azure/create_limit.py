"""Keeps to Azure's limit on creates, so that Azure does not refuse them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from cloud.accounts.register import CreateCounter
from cloud.formatting import format_rough_duration

WINDOWS = ((100, 300.0), (300, 3600.0))
"""So many creates of container groups in so many seconds, per subscription and region, as documented."""
_COUNT_AGAIN_S = 5.0


class CreateLimit:
    """Limits one run's creates by `creates`, which counts for the whole subscription. May be used from any thread.

    After a refusal it does not use the counter again for some seconds, however many groups wait.
    """

    def __init__(
        self,
        creates: CreateCounter,
        windows: Sequence[tuple[int, float]] = WINDOWS,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._creates = creates
        self._windows = tuple(windows)
        self._now_s = now_s
        self._count_again_s = self._free_s = now_s()
        self._lock = threading.Lock()

    def take(self) -> float:
        """Count one create and return 0.0; or return how many seconds to wait before the next try."""
        with self._lock:
            now_s = self._now_s()
            if now_s < self._count_again_s:
                return self._count_again_s - now_s
            wait_s = self._creates.take(self._windows)
            self._free_s = now_s + wait_s
            self._count_again_s = now_s + min(wait_s, _COUNT_AGAIN_S)
            return self._count_again_s - now_s

    def words(self) -> str:
        """Return why no group is created now; empty if none waits."""
        wait_s = self._free_s - self._now_s()
        if wait_s <= 0.0:
            return ""
        (most, window_s), *others = self._windows
        takes = f"{most} creates of container groups {_within(window_s)}"
        takes += "".join(f" and {most} {_within(window_s)}" for most, window_s in others)
        return (
            f"Azure takes {takes}, counted over all jobs in this subscription; there is room for the next one in"
            f" {format_rough_duration(wait_s)}"
        )


def _within(window_s: float) -> str:
    return "an hour" if window_s == 3600.0 else f"in {window_s / 60:g} minutes"
