"""One call in flight on AWS, and the outcome that its end means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cloud import failures
from cloud.actor.wire import ActorAnswer
from cloud.failures import Failure
from cloud.platforms.aws.invoke import Reply
from cloud.platforms.outcomes import call_outcome, ended_outcome
from training.engine.messages import Call, Outcome
from training.functions.body import Result


@dataclass
class InvokedCall:
    """`out`: its function may be running. `over`: its outcome was returned, whatever still arrives."""

    call: Call
    submitted_s: float
    state: Literal["waiting", "out", "over"] = "waiting"
    sent_s: float = 0.0
    attempts: int = 0
    cancelled: bool = False
    give_up_s: float | None = None


@dataclass(frozen=True)
class FunctionReply:
    """A function's reply, and the checked answer in it if there is one."""

    call_id: str
    reply: Reply
    landed_s: float
    answer: ActorAnswer | None = None
    result: Result | Failure = field(default_factory=lambda: failures.CANCELLED)


def outcome_of(flight: InvokedCall, landed: FunctionReply) -> Outcome:
    """Return the outcome. Times are measured here; the billed time is the provider's, None if it is not known."""
    reply, answer = landed.reply, landed.answer
    total_s = landed.landed_s - flight.submitted_s
    waited_s = max(0.0, flight.sent_s - flight.submitted_s) if flight.sent_s else total_s
    report = reply.report
    out_s = total_s - waited_s
    ran_s = answer.run_s if answer is not None else report.duration_s if report is not None else 0.0
    run_s = min(ran_s, out_s)
    init_s = min(report.init_s if report is not None else 0.0, out_s - run_s)
    cold = report.init_s > 0 if report is not None else answer is not None and answer.calls_before == 0
    outcome = call_outcome(
        flight.call,
        flight.submitted_s,
        landed.landed_s,
        landed.result,
        cold_start=cold,
        provisioned=answer is not None and answer.provisioned,
        startup_s=waited_s + init_s,
        run_s=run_s,
        transfer_s=max(0.0, out_s - run_s - init_s),
        billed_s=billed_s(reply),
    )
    if not flight.cancelled:
        return outcome
    return ended_outcome(
        flight.call.id, failures.CANCELLED, outcome.usage, outcome.started_s, outcome.finished_s
    )


def billed_s(reply: Reply) -> float | None:
    """Return what the provider billed; 0.0 if the function certainly did not run; None if that is not known."""
    if reply.report is not None:
        return reply.report.billed_s
    return 0.0 if reply.ran is False else None
