"""How long a call may take, set from what such calls took: the deadline is what a worst case costs."""

from __future__ import annotations

from collections import defaultdict, deque

from training.messages import CallKind

_MARGIN = 4.0
_LEAST_S = 10.0
_REMEMBERED = 64
_LEARNER_S = 900.0


class Deadlines:
    """Starts from the spec's longest call and tightens to a multiple of the slowest that was seen lately."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._seen: dict[CallKind, deque[float]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))

    def for_kind(self, kind: CallKind, episodes: int = 1) -> float:
        """Seconds for a call; an evaluation's grow with its episodes, whose length nobody knows beforehand."""
        if kind == "update":
            return _LEARNER_S
        longest_s = min(_LEARNER_S, self._longest_s * episodes)
        seen = self._seen[kind]
        return min(longest_s, max(_LEAST_S, _MARGIN * max(seen))) if seen else longest_s

    def for_retry(self, kind: CallKind, deadline_s: float) -> float:
        """Seconds for another attempt at a call that had `deadline_s`: never less."""
        return max(deadline_s, self.for_kind(kind))

    def came(self, kind: CallKind, took_s: float) -> None:
        """A call was done, this long after it was sent."""
        self._seen[kind].append(took_s)

    def overran(self, kind: CallKind, deadline_s: float) -> None:
        """A call ran into its deadline; the next ones may take twice as long."""
        self._seen[kind].append(2.0 * deadline_s / _MARGIN)
