"""How long a call may take, set from what such calls took: the deadline is what a worst case costs."""

from __future__ import annotations

from collections import defaultdict, deque

from training.messages import Call, CallKind, Outcome

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

    def learn(self, call: Call, outcome: Outcome) -> None:
        """Take account of how a call went; one that ran into its deadline allows the next ones twice as long."""
        usage = outcome.usage
        if outcome.status == "done":
            self._seen[call.kind].append(usage.startup_s + usage.run_s + usage.transfer_s)
        elif outcome.reason_code == "deadline":
            self._seen[call.kind].append(2.0 * call.deadline_s / _MARGIN)
