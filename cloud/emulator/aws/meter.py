"""The bill of the emulated account, computed without any ledger: tests compare ledgers with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cloud.billing.price_book import PriceBook
from cloud.pricing import price_line

_MB_MS_PER_GB_S = 1024 * 1000


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
class Meter:
    invocations: list[BilledInvocation] = field(default_factory=list)
    provisioned: list[ProvisionedSpan] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def executions(self) -> Counter[str]:
        """Return how often each call was really executed."""
        return Counter(one.call_id for one in self.invocations if one.call_id is not None)

    def picodollars_of(self, call_id: str, book: PriceBook, region: str) -> int:
        return sum(self._picodollars(one, book, region) for one in self.invocations if one.call_id == call_id)

    def picodollars(self, book: PriceBook, region: str) -> int:
        """Return the cost of all invocations, each line rounded once, without provisioned instances."""
        return sum(self._picodollars(one, book, region) for one in self.invocations)

    def _picodollars(self, one: BilledInvocation, book: PriceBook, region: str) -> int:
        sku = "lambda.provisioned.duration.x86" if one.provisioned else "lambda.duration.x86"
        time = price_line(book.row(sku, region), one.billed_ms * one.memory_mb, _MB_MS_PER_GB_S)
        return time.picodollars + price_line(book.row("lambda.request", region), 1).picodollars


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
