"""An executor that does no work and says at once how much it was: for thousands of schedules a minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cloud import failures
from cloud.failures import Failure
from cloud.workers.execution import Execution
from training.calls.rollout import RolloutRequest
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result


def planned_work(call: Call) -> Result | Failure:
    """As many steps as the request says; an update of as many minibatches as its seed."""
    if isinstance(call.request, RolloutRequest):
        steps = call.request.steps * call.request.environments
        return Result(b"trajectory", b"state", Usage(steps=steps, inferences=steps))
    return Result(b"learned", None, Usage(minibatches=call.seed))


class InstantExecutor:
    """Answers in the order that `pick` chooses among those waiting; the outcome must not depend on it."""

    def __init__(
        self,
        work: Callable[[Call], Result | Failure] = planned_work,
        pick: Callable[[int], int] = lambda waiting: 0,
    ) -> None:
        self._work = work
        self._pick = pick
        self._waiting: deque[Call] = deque()
        self._cancelled: set[str] = set()
        self.closed = False

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None:
        self._waiting.append(call)

    def take(self, timeout_s: float) -> Execution | None:
        if not self._waiting:
            return None
        at = self._pick(len(self._waiting))
        call = self._waiting[at]
        del self._waiting[at]
        result = failures.CANCELLED if call.id in self._cancelled else self._work(call)
        return Execution(call.id, result)

    def cancel(self, call_id: str) -> None:
        self._cancelled.add(call_id)

    def close(self) -> None:
        self.closed = True
