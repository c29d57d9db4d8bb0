"""What a simulated cloud would put on the bill, apart from anybody's ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

from training.messages import Call
from training.reports import Usage


@dataclass(frozen=True)
class BilledCall:
    call_id: str
    memory_mb: int
    billed_ms: int


@dataclass
class Meter:
    """Functions by call, the learner's server from its order to its end. Times are virtual."""

    calls: list[BilledCall] = field(default_factory=list)
    server_from_ns: int | None = None
    server_to_ns: int | None = None

    def add(self, call: Call, usage: Usage) -> None:
        """A function's call has ended. One that never began is not billed, and the server is billed by time."""
        if call.where == "actor" and usage.billed_s:
            self.calls.append(BilledCall(call.id, call.memory_mb, round(usage.billed_s * 1000)))
