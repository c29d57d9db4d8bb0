"""Functions without a process, for tests of scale: each invocation answers after a given time."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from cloud.actor.wire import (
    ActorAnswer,
    MalformedMessage,
    MeasuredWork,
    from_json,
    pack_answer,
    read_request,
    to_json,
)
from training.functions.body import Result

_EVENT_LIMIT_BYTES = 8 * 2**20


@dataclass(frozen=True)
class StubFunction:
    """Answers every call after `seconds`, with `result` if there is one."""

    seconds: float
    result: Result | None = None

    def answer(self, event: bytes) -> bytes:
        try:
            envelope = from_json(event, limit_bytes=_EVENT_LIMIT_BYTES)
            request = read_request(envelope.data)
        except MalformedMessage:
            return b'{"parked": true}'
        call = request.call
        if self.result is None:
            answer = ActorAnswer(
                run=request.run, call_id=call.id, status="failed", reason="parked", reason_code="parked"
            )
        else:
            answer = ActorAnswer(
                run=request.run,
                call_id=call.id,
                status="done",
                version=call.weights.version if call.weights is not None else None,
                payload=self.result.payload,
                slot_state=self.result.slot_state,
                work=MeasuredWork.of(self.result.usage),
                run_s=self.seconds,
                calls_before=1,
            )
        return to_json(envelope.call_id, pack_answer(answer))


def call_id_of(event: bytes) -> str | None:
    """Return the call that an event names, read from the event's beginning; None if it is not one of ours."""
    prefix = b'{"call": "'
    if not event.startswith(prefix):
        return None
    end = event.find(b'"', len(prefix))
    return event[len(prefix) : end].decode(errors="replace") if end > 0 else None


def deadline_of(event: bytes, otherwise_s: float) -> float:
    """Return how long the call in an event may take; `otherwise_s` if it is not one of ours."""
    try:
        return read_request(from_json(event, limit_bytes=_EVENT_LIMIT_BYTES).data).call.deadline_s
    except MalformedMessage:
        return otherwise_s


def encode_result(result: Result) -> dict[str, object]:
    """Return a result as JSON, for an emulator in another process."""
    return {
        "payload": base64.b64encode(result.payload).decode(),
        "slot_state": base64.b64encode(result.slot_state).decode() if result.slot_state is not None else None,
        "work": MeasuredWork.of(result.usage).model_dump(),
    }


def decode_result(document: dict[str, object]) -> Result:
    state = document["slot_state"]
    return Result(
        base64.b64decode(str(document["payload"])),
        base64.b64decode(str(state)) if state is not None else None,
        MeasuredWork.model_validate(document["work"]).usage(),
    )
