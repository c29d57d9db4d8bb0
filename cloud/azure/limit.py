"""Azure's own limit on creates, kept to before Azure has to say no."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

WINDOWS = ((100, 300.0), (300, 3600.0))
"""So many creates of container groups in so many seconds, per subscription and region, as documented."""


class CreateLimit:
    """Counts this process's creates. Others of the subscription are not known here: what they use up, Azure tells."""

    def __init__(self, windows: Sequence[tuple[int, float]] = WINDOWS) -> None:
        self._windows = tuple(windows)
        self._made: deque[float] = deque(maxlen=max(most for most, _ in windows))
        self._lock = threading.Lock()

    def take(self, now_s: float) -> float:
        """0.0, and one create is counted; or how many seconds to wait before asking again."""
        with self._lock:
            waits = [self._wait_s(most, window_s, now_s) for most, window_s in self._windows]
            wait_s = max(waits)
            if wait_s <= 0.0:
                self._made.append(now_s)
            return max(0.0, wait_s)

    def words(self, now_s: float) -> str:
        """Why nothing is created now, if so."""
        with self._lock:
            for most, window_s in self._windows:
                wait_s = self._wait_s(most, window_s, now_s)
                if wait_s > 0.0:
                    window = "an hour" if window_s == 3600.0 else f"{window_s:.0f} s"
                    return (
                        f"Azure takes {most} creates of container groups in {window}; the next one is asked for in"
                        f" {wait_s:.0f} s"
                    )
        return ""

    def _wait_s(self, most: int, window_s: float, now_s: float) -> float:
        if len(self._made) < most:
            return 0.0
        return self._made[-most] + window_s - now_s
