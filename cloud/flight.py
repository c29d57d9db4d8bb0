"""A call on the simulated cloud, from its submission to its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from cloud import blobs, failures, timing
from cloud.failures import Failure
from cloud.fleet import Instance
from cloud.timing import NS, Timing
from training.functions.body import Result
from training.messages import Call, Outcome, Status
from training.reports import Usage


@dataclass
class Flight:
    """All times are virtual. `timing` and `finish_ns` are known once the real work is done and the turn came."""

    call: Call
    submitted_ns: int
    finish_ns: int
    result: Result | Failure | None = None
    timing: Timing | None = None
    wait_ns: int = 0
    cold: bool = False
    instance: Instance | None = None
    cancelled: bool = False
    scheduled: bool = False

    @property
    def begin_ns(self) -> int:
        """When its turn came."""
        return self.submitted_ns + self.wait_ns

    def work(self) -> Usage:
        """What the body did; a body that really failed did nothing that can be counted."""
        return self.result.usage if isinstance(self.result, Result) else Usage()

    def byte_counts(self) -> tuple[int, int]:
        """There and back."""
        back = self.result
        return blobs.bytes_in(self.call), (
            blobs.bytes_out(back.payload, back.env_state) if isinstance(back, Result) else 0
        )

    def failure(self) -> Failure | None:
        """Why there is no result, if there is none."""
        if self.cancelled:
            return failures.CANCELLED
        if isinstance(self.result, Failure):
            return self.result
        if self.timing is None or not self.timing.fault:
            return None
        ran_s = self.timing.run_ns / NS
        if self.timing.fault == "deadline":
            return Failure("deadline", f"stopped at its deadline of {ran_s:g} s (simulated)")
        return Failure("function_failed", f"the function failed after {ran_s:.3f} s (simulated)")

    def usage(self) -> Usage:
        """Work done and virtual times; of a cancelled call only the time that had passed by then."""
        times = self.timing or Timing(0, 0, 0)
        left_ns = self.finish_ns - self.submitted_ns
        spent: list[int] = []
        for part_ns in (self.wait_ns, times.start_ns, times.run_ns, times.transfer_ns):
            spent.append(min(part_ns, left_ns))
            left_ns -= spent[-1]
        wait_ns, start_ns, ran_ns, way_ns = spent
        bytes_in, bytes_out = self.byte_counts()
        function = self.call.where == "actor"
        return self.work().model_copy(
            update={
                "bytes_in": bytes_in,
                "bytes_out": bytes_out,
                "cold_start": self.cold,
                "startup_s": (wait_ns + start_ns) / NS,
                "run_s": ran_ns / NS,
                "transfer_s": way_ns / NS,
                "billed_s": timing.billed_ms(start_ns + ran_ns) / 1000 if function else ran_ns / NS,
                "memory_mb": self.call.memory_mb,
            }
        )

    def outcome(self) -> Outcome:
        failure = self.failure()
        status: Status = "done"
        if failure is not None:
            status = "cancelled" if failure.code == "cancelled" else "failed"
        given = self.result if failure is None and isinstance(self.result, Result) else None
        return Outcome(
            call_id=self.call.id,
            status=status,
            started_s=self.submitted_ns / NS,
            finished_s=self.finish_ns / NS,
            usage=self.usage(),
            payload=given.payload if given else b"",
            env_state=given.env_state if given else None,
            reason=failure.reason if failure else "",
            reason_code=failure.code if failure else "",
        )
