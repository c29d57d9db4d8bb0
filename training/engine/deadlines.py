"""Deadlines of calls, derived from how long such calls took. A call's deadline is its worst case of cost."""

from __future__ import annotations

from collections import defaultdict, deque

from training.calls import KINDS
from training.calls.kind import LONGEST_CALL_S

MARGIN = 4.0
LEAST_S = 10.0
REMEMBERED = 64


class Deadlines:
    """Starts from the spec's longest call and tightens to a multiple of the slowest recent call."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._seen: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    def for_kind(self, kind: str, share: int = 1) -> float:
        """Return the seconds for a call. An evaluation's grow with its share of the work, whose length is not
        known beforehand.
        """
        if (fixed_s := KINDS[kind].deadline_s) is not None:
            return fixed_s
        longest_s = min(LONGEST_CALL_S, self._longest_s * share)
        seen = self._seen[kind]
        return min(longest_s, max(LEAST_S, MARGIN * max(seen))) if seen else longest_s

    def for_retry(self, kind: str, deadline_s: float) -> float:
        """Return the seconds for another attempt at a call that had `deadline_s`: at least as many."""
        return max(deadline_s, self.for_kind(kind))

    def record_done(self, kind: str, took_s: float) -> None:
        """Record that a call was done `took_s` after it was sent."""
        self._seen[kind].append(took_s)

    def record_timeout(self, kind: str, deadline_s: float) -> None:
        """Record that a call ran into its deadline; the next ones may take twice as long."""
        self._seen[kind].append(2.0 * deadline_s / MARGIN)
