"""Outcomes of calls, for platforms of every kind: from an actor's answer, a learner's execution, or a failure."""

from __future__ import annotations

from typing import Protocol

from cloud.actor import answers, blobs, wire
from cloud.failures import Failure, OtherCode
from cloud.workers.execution import Execution
from training.engine.messages import Call, Outcome
from training.engine.reports import Usage
from training.functions.body import Result


class Learner(Protocol):
    """Runs the learner's calls, as `cloud.workers.learner_thread.LearnerThread` does."""

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None: ...

    def cancel(self, call_id: str) -> None: ...

    def seconds_to_limit(self) -> float: ...

    def enforce_limit(self) -> None: ...

    def close(self) -> None: ...


def learner_outcome(call: Call, submitted_s: float, execution: Execution) -> Outcome:
    """Return the outcome of a learner's call, which ran in this process."""
    return call_outcome(
        call,
        submitted_s,
        submitted_s + execution.waited_s + execution.run_s,
        execution.result,
        startup_s=execution.waited_s,
        run_s=execution.run_s,
        billed_s=execution.run_s,
    )


def call_outcome(
    call: Call, submitted_s: float, finished_s: float, result: Result | Failure, **measured: float | None
) -> Outcome:
    """Return the outcome of a call. `measured` are the fields of its usage that the platform measured."""
    payload, slot_state = (result.payload, result.slot_state) if isinstance(result, Result) else (b"", None)
    usage = (result.usage if isinstance(result, Result) else Usage()).model_copy(
        update={
            "bytes_in": blobs.bytes_in(call),
            "bytes_out": blobs.bytes_out(payload, slot_state),
            "memory_mb": call.memory_mb,
            **measured,
        }
    )
    if isinstance(result, Failure):
        return ended_outcome(call.id, result, usage, submitted_s, finished_s)
    return Outcome(
        call_id=call.id,
        status="done",
        started_s=submitted_s,
        finished_s=finished_s,
        usage=usage,
        payload=payload,
        slot_state=slot_state,
    )


def ended_outcome(call_id: str, why: Failure, usage: Usage, started_s: float, finished_s: float) -> Outcome:
    """Return the outcome of a call without a result: cancelled if that is the reason, else failed."""
    return Outcome(
        call_id=call_id,
        status="cancelled" if why.code == "cancelled" else "failed",
        started_s=started_s,
        finished_s=finished_s,
        usage=usage,
        reason=why.reason,
        reason_code=why.code,
    )


def read_answer(call: Call, run: str, data: bytes) -> tuple[wire.ActorAnswer | None, Result | Failure]:
    """Return an actor's checked answer and its result; no answer, and why, if it must not be used."""
    try:
        answer, result = answers.answer_to(call, run, data)
    except wire.MalformedMessage as refusal:
        return None, unusable_answer(refusal)
    return answer, result or Failure(OtherCode(answer.reason_code or "error"), answer.reason)


def unusable_answer(refusal: wire.MalformedMessage) -> Failure:
    return Failure(OtherCode(f"refused_{refusal.code}"), f"the answer cannot be used: {refusal.reason}")
