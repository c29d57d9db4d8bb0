"""A cloud that does nothing: every call is answered at once by what a real one once gave. What is left is ourselves.

It replaces the cloud's SDK: requests are packed, answers are read and checked, and outcomes are made by the
code that AWS Lambda's platform has for it. What the cloud itself does here, which is making up bytes, is counted apart.
"""

from __future__ import annotations

import base64
import io
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cloud.actor.wire import ActorAnswer, MeasuredWork, pack_answer, to_json
from cloud.platforms.aws.flight import InvokedCall, outcome_of
from cloud.platforms.aws.invoker import Invoker
from cloud.platforms.aws.weights import AwsWeights
from training.calls.rollout import RolloutRequest
from training.calls.update import UpdateRequest
from training.engine.codec import decode, encode
from training.engine.messages import BlobRef, Call, Outcome
from training.rl.batch import Batch
from training.rl.learner import LearnerState

RUN = "0" * 32
_REPORT = (
    "REPORT RequestId: 7d9cbd4f-7c8e-4d3c-9c3f-1c2a5b0f0001\tDuration: 201.30 ms\tBilled Duration: 202 ms\t"
    "Memory Size: 1769 MB\tMax Memory Used: 118 MB\n"
)


@dataclass(frozen=True)
class Prepared:
    """What a real rollout and a real update gave: payloads, the environments' state, the work."""

    trajectory: bytes
    slot_state: bytes
    work: dict[str, Any]
    update: bytes
    update_work: dict[str, Any]

    @staticmethod
    def from_json(document: dict[str, Any]) -> Prepared:
        """From JSON, where bytes are base64."""
        made = {name: base64.b64decode(document[name]) for name in ("trajectory", "slot_state", "update")}
        return Prepared(**made, work=document["work"], update_work=document["update_work"])


class _Client:
    """Takes the SDK's place. `own_ns` is the CPU that it takes itself."""

    def __init__(self, prepared: Prepared) -> None:
        self._trajectory = decode(prepared.trajectory)
        self._slot_state = prepared.slot_state
        self._work = MeasuredWork.model_validate(prepared.work)
        self._log = base64.b64encode(_REPORT.encode()).decode()
        self.call: Call | None = None
        self.own_ns = 0

    def invoke(self, *, Payload: Any, **request: Any) -> dict[str, Any]:
        began_ns = time.thread_time_ns()
        call = self.call
        assert call is not None
        assert call.weights is not None
        assert isinstance(call.request, RolloutRequest)
        key = (call.weights.version, call.request.slot)
        answer = ActorAnswer(
            run=RUN,
            call_id=call.id,
            status="done",
            version=call.weights.version,
            payload=encode({**self._trajectory, "version": key[0], "slot": key[1]}),
            slot_state=self._slot_state,
            work=self._work,
            run_s=0.2,
            calls_before=1,
        )
        body = io.BytesIO(to_json(call.id, pack_answer(answer)))
        self.own_ns += time.thread_time_ns() - began_ns
        return {"Payload": body, "LogResult": self._log}


class _NoneKept:
    """No instances are kept ready: calls go to the function itself."""

    qualifier = None


class NullCloud:
    """Implements `training.engine.ports.Platform` in one thread: `next` answers a call at once.

    An update checks its trajectories into a batch, as a learner in this process would, and learns nothing.
    """

    def __init__(self, prepared: Prepared, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = _Client(prepared)
        self._weights = AwsWeights(None, None, "")
        kept: Any = _NoneKept()
        self._invoker = Invoker(self._client, self._weights, kept, "starling", RUN, 30.0)
        self._waiting: deque[InvokedCall] = deque()
        self._update = decode(prepared.update)
        self._update_work = MeasuredWork.model_validate(prepared.update_work).usage()
        self._clock = clock
        self.batch_ns = 0
        self.answered = 0

    @property
    def own_ns(self) -> int:
        return self._client.own_ns

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._weights.publish(version, blob)

    def submit(self, call: Call) -> None:
        now_s = self.now_s()
        self._waiting.append(InvokedCall(call, now_s, state="out", sent_s=now_s, attempts=1))

    def next(self, timeout_s: float) -> Outcome | None:
        if not self._waiting:
            return None
        flight = self._waiting.popleft()
        if flight.call.where == "learner":
            return self._learned(flight.call)
        self.answered += 1
        self._client.call = flight.call
        return outcome_of(flight, self._invoker.invoke(flight.call))

    def cancel(self, call_id: str) -> None:
        """A call in flight is answered before it could be cancelled."""

    def now_s(self) -> float:
        return self._clock()

    def close(self) -> None:
        self._waiting.clear()

    def _learned(self, call: Call) -> Outcome:
        request = call.request
        assert isinstance(request, UpdateRequest)
        began_ns = time.thread_time_ns()
        state = LearnerState.decode(call.inputs[0])
        oldest = max(0, state.version - request.staleness_limit)
        decoded_ns = time.thread_time_ns()
        batch = Batch.of(call.inputs[1:], range(oldest, state.version + 1), state.spaces)
        batched_ns = time.thread_time_ns()
        payload = self._next_version(state, batch.size)
        self.batch_ns += batched_ns - decoded_ns
        self._client.own_ns += time.thread_time_ns() - batched_ns + decoded_ns - began_ns
        now_s = self.now_s()
        return Outcome(
            call_id=call.id,
            status="done",
            started_s=now_s,
            finished_s=now_s,
            usage=self._update_work.model_copy(update={"run_s": 0.1, "billed_s": 0.1}),
            payload=payload,
        )

    def _next_version(self, state: LearnerState, samples: int) -> bytes:
        version = state.version + 1
        following = replace(state, version=version).encode()
        return encode({**self._update, "state": following, "version": version, "env_steps": samples})
