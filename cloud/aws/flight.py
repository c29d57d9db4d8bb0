"""One call on its way through AWS, and what its end means as an outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cloud import blobs, failures
from cloud.aws.invoke import Reply
from cloud.failures import Failure
from cloud.outcomes import ended
from cloud.wire import Answer
from training.functions.body import Result
from training.messages import Call, Outcome
from training.reports import Usage


@dataclass
class Flight:
    """`out`: its function may be running. `over`: its outcome was told, whatever still comes."""

    call: Call
    submitted_s: float
    state: Literal["waiting", "out", "over"] = "waiting"
    sent_s: float = 0.0
    attempts: int = 0
    cancelled: bool = False
    give_up_s: float | None = None


@dataclass(frozen=True)
class Landed:
    """A function's reply, and the checked answer in it if there is one."""

    call_id: str
    reply: Reply
    landed_s: float
    answer: Answer | None = None
    result: Result | Failure = field(default_factory=lambda: failures.CANCELLED)


def outcome_of(flight: Flight, landed: Landed) -> Outcome:
    """Times are those of this side; the billed time is the provider's, and unknown where he said nothing."""
    reply, answer = landed.reply, landed.answer
    total_s = landed.landed_s - flight.submitted_s
    waited_s = max(0.0, flight.sent_s - flight.submitted_s) if flight.sent_s else total_s
    report = reply.report
    out_s = total_s - waited_s
    ran_s = answer.run_s if answer is not None else report.duration_s if report is not None else 0.0
    run_s = min(ran_s, out_s)
    init_s = min(report.init_s if report is not None else 0.0, out_s - run_s)
    cold = report.init_s > 0 if report is not None else answer is not None and answer.calls_before == 0
    result = landed.result
    done = isinstance(result, Result)
    usage = result.usage if isinstance(result, Result) else Usage()
    usage = usage.model_copy(
        update={
            "bytes_in": blobs.bytes_in(flight.call),
            "bytes_out": blobs.bytes_out(result.payload, result.env_state)
            if isinstance(result, Result)
            else 0,
            "cold_start": cold,
            "provisioned": answer is not None and answer.provisioned,
            "startup_s": waited_s + init_s,
            "run_s": run_s,
            "transfer_s": max(0.0, out_s - run_s - init_s),
            "billed_s": billed_s(reply),
            "memory_mb": flight.call.memory_mb,
        }
    )
    if flight.cancelled:
        return ended(flight.call.id, flight.submitted_s, failures.CANCELLED, usage, landed.landed_s)
    if not done:
        assert isinstance(result, Failure)
        return ended(flight.call.id, flight.submitted_s, result, usage, landed.landed_s)
    assert isinstance(result, Result)
    return Outcome(
        call_id=flight.call.id,
        status="done",
        started_s=flight.submitted_s,
        finished_s=landed.landed_s,
        usage=usage,
        payload=result.payload,
        env_state=result.env_state,
    )


def billed_s(reply: Reply) -> float | None:
    """What the provider said; nothing where it certainly did not run; None where nobody knows."""
    if reply.report is not None:
        return reply.report.billed_s
    return 0.0 if reply.ran is False else None
