"""Outcomes of calls that ran in this process, or that ended without a result, for platforms of every kind."""

from __future__ import annotations

from typing import Protocol

from cloud import blobs
from cloud.failures import Failure
from cloud.workers.execution import Execution
from training.functions.body import Result
from training.messages import Call, Outcome
from training.reports import Usage


class Learner(Protocol):
    """What a learner's thread offers."""

    def submit(self, call: Call, weights: bytes | None, limit_s: float) -> None: ...

    def cancel(self, call_id: str) -> None: ...

    def seconds_to_limit(self) -> float: ...

    def enforce_limit(self) -> None: ...

    def close(self) -> None: ...


def learner_outcome(call: Call, submitted_s: float, execution: Execution) -> Outcome:
    """A call of the learner, which ran in this process."""
    result = execution.result
    usage = result.usage if isinstance(result, Result) else Usage()
    usage = usage.model_copy(
        update={
            "bytes_in": blobs.bytes_in(call),
            "bytes_out": blobs.bytes_out(result.payload, result.env_state)
            if isinstance(result, Result)
            else 0,
            "startup_s": execution.waited_s,
            "run_s": execution.run_s,
            "billed_s": execution.run_s,
            "memory_mb": call.memory_mb,
        }
    )
    finished_s = submitted_s + execution.waited_s + execution.run_s
    return done_or_ended(call.id, submitted_s, result, usage, finished_s)


def done_or_ended(
    call_id: str, submitted_s: float, result: Result | Failure, usage: Usage, finished_s: float
) -> Outcome:
    if isinstance(result, Failure):
        return ended(call_id, submitted_s, result, usage, finished_s)
    return Outcome(
        call_id=call_id,
        status="done",
        started_s=submitted_s,
        finished_s=finished_s,
        usage=usage,
        payload=result.payload,
        env_state=result.env_state,
    )


def ended(call_id: str, submitted_s: float, why: Failure, usage: Usage, finished_s: float) -> Outcome:
    """Of a call without a result: cancelled if that is the reason, else failed."""
    return Outcome(
        call_id=call_id,
        status="cancelled" if why.code == "cancelled" else "failed",
        started_s=submitted_s,
        finished_s=finished_s,
        usage=usage,
        reason=why.reason,
        reason_code=why.code,
    )
