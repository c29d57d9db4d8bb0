"""A platform in virtual time where everything depends on chance: how long calls take, and whether they fail."""

from __future__ import annotations

import hashlib
import heapq
import random
from dataclasses import dataclass

from training.engine.messages import BlobRef, Call, Outcome
from training.functions.body import WarmCache
from training.functions.run import execute

# Times are whole multiples of this, which floating point adds without rounding.
_TICK_S = 2.0**-10


@dataclass
class Flown:
    """One call: when it was submitted, and its outcome once it landed."""

    call: Call
    submitted_s: float
    outcome: Outcome | None = None


class ChancePlatform:
    """Bodies are run at once and handed over when their time has come. Keeps what it was given, in order."""

    def __init__(self, seed: int, *, failures: float = 0.15, slowest_s: float = 4.0) -> None:
        self._random = random.Random(seed)
        self._failures = failures
        self._slowest_s = slowest_s
        self._blobs: dict[str, bytes] = {}
        self._by_finish: list[tuple[float, int, str]] = []
        self._cancelled: set[str] = set()
        self._now_s = 0.0
        self._warmth = WarmCache()
        self.flown: dict[str, Flown] = {}

    def publish(self, version: int, blob: bytes) -> BlobRef:
        digest = hashlib.sha256(blob).hexdigest()
        self._blobs[digest] = blob
        return BlobRef(version=version, sha256=digest, byte_count=len(blob))

    def submit(self, call: Call) -> None:
        assert call.id not in self.flown
        self.flown[call.id] = Flown(call, self._now_s)
        takes_s = self._random.randrange(1, int(self._slowest_s / _TICK_S)) * _TICK_S
        heapq.heappush(self._by_finish, (self._now_s + takes_s, len(self.flown), call.id))

    def next(self, timeout_s: float) -> Outcome | None:
        horizon_s = self._now_s + timeout_s
        if not self._by_finish:
            return None
        if self._by_finish[0][0] > horizon_s:
            self._now_s = horizon_s
            return None
        finish_s, _, call_id = heapq.heappop(self._by_finish)
        self._now_s = max(self._now_s, finish_s)
        flown = self.flown[call_id]
        flown.outcome = self._outcome(flown)
        return flown.outcome

    def cancel(self, call_id: str) -> None:
        self._cancelled.add(call_id)
        self._by_finish = [
            (self._now_s if name == call_id else at_s, count, name) for at_s, count, name in self._by_finish
        ]
        heapq.heapify(self._by_finish)

    def now_s(self) -> float:
        return self._now_s

    def close(self) -> None:
        self._by_finish.clear()

    def _outcome(self, flown: Flown) -> Outcome:
        call = flown.call
        times = {"started_s": flown.submitted_s, "finished_s": self._now_s}
        if call.id in self._cancelled:
            return Outcome(call_id=call.id, status="cancelled", **times)
        if self._random.random() < self._failures:
            return Outcome(call_id=call.id, status="failed", reason="chance", **times)
        weights = self._blobs[call.weights.sha256] if call.weights else None
        result = execute(call, weights, self._warmth)
        return Outcome(
            call_id=call.id,
            status="done",
            usage=result.usage,
            payload=result.payload,
            slot_state=result.slot_state,
            **times,
        )
