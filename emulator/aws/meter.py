"""What the emulated account bills, and its log of an invocation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BilledInvocation:
    """One execution, as the provider counts it. `call_id` is from the event, if it was one of ours."""

    request_id: str
    function: str
    call_id: str | None
    memory_mb: int
    billed_ms: int
    init_ms: float
    provisioned: bool
    error: str = ""


@dataclass
class ProvisionedSpan:
    function: str
    memory_mb: int
    instances: int
    from_s: float
    to_s: float | None = None


@dataclass
class LambdaMeter:
    invocations: list[BilledInvocation] = field(default_factory=list)
    provisioned: list[ProvisionedSpan] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def log_of(
    billed: BilledInvocation, version: str, duration_s: float, most_memory_mb: int, output: str
) -> list[str]:
    """Return the log of one invocation as Lambda writes it: the function's output between Lambda's own lines."""
    report = (
        f"REPORT RequestId: {billed.request_id}\tDuration: {duration_s * 1000:.2f} ms\t"
        f"Billed Duration: {billed.billed_ms} ms\tMemory Size: {billed.memory_mb} MB\t"
        f"Max Memory Used: {max(1, most_memory_mb)} MB\t"
    )
    return [
        f"START RequestId: {billed.request_id} Version: {version}",
        *output.splitlines(),
        f"END RequestId: {billed.request_id}",
        report + (f"Init Duration: {billed.init_ms:.2f} ms\t" if billed.init_ms else ""),
    ]
