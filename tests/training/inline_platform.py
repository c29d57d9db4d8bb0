"""A platform that runs every call at once in this process: the smallest real one, for tests of the engine."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

from training.engine.messages import BlobRef, Call, Outcome
from training.functions.body import WarmCache
from training.functions.run import execute


class InlinePlatform:
    """Time is a counter of calls. `order` picks which waiting call answers next; `fault` may fail one instead."""

    def __init__(
        self,
        *,
        order: Callable[[int], int] = lambda waiting: 0,
        fault: Callable[[Call], str | None] = lambda call: None,
        fault_code: str = "made_to_fail",
        warmths: int = 1,
    ) -> None:
        self._order = order
        self._fault = fault
        self._fault_code = fault_code
        self._warmths = [WarmCache() for _ in range(warmths)]
        self._blobs: dict[str, bytes] = {}
        self._waiting: deque[Call] = deque()
        self._cancelled: set[str] = set()
        self._time_s = 0.0
        self.submitted: list[Call] = []

    def publish(self, version: int, blob: bytes) -> BlobRef:
        digest = hashlib.sha256(blob).hexdigest()
        self._blobs[digest] = blob
        return BlobRef(version=version, sha256=digest, byte_count=len(blob))

    def submit(self, call: Call) -> None:
        self.submitted.append(call)
        self._waiting.append(call)

    def next(self, timeout_s: float) -> Outcome | None:
        if not self._waiting:
            return None
        self._waiting.rotate(-self._order(len(self._waiting)))
        call = self._waiting.popleft()
        began = self._time_s
        self._time_s += 0.25
        if call.id in self._cancelled:
            return Outcome(call_id=call.id, status="cancelled", started_s=began, finished_s=self._time_s)
        reason = self._fault(call)
        if reason is not None:
            return Outcome(
                call_id=call.id,
                status="refused" if reason == "budget" else "failed",
                started_s=began,
                finished_s=self._time_s,
                reason=reason,
                reason_code=self._fault_code,
            )
        weights = self._blobs[call.weights.sha256] if call.weights else None
        warm_cache = self._warmths[len(self.submitted) % len(self._warmths)]
        try:
            result = execute(call, weights, warm_cache)
        except Exception as error:
            return Outcome(
                call_id=call.id,
                status="failed",
                started_s=began,
                finished_s=self._time_s,
                reason=f"{type(error).__name__}: {error}",
                reason_code="raised",
            )
        return Outcome(
            call_id=call.id,
            status="done",
            started_s=began,
            finished_s=self._time_s,
            usage=result.usage,
            cost_picodollars=1000,
            payload=result.payload,
            slot_state=result.slot_state,
        )

    def cancel(self, call_id: str) -> None:
        self._cancelled.add(call_id)

    def now_s(self) -> float:
        return self._time_s

    def close(self) -> None:
        self._waiting.clear()
