"""The bills of emulated accounts, computed without any ledger, which tests compare with ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import container_parts
from cloud.money.pricing import lines_of, price_line, total
from emulator.aws.meter import BilledInvocation, LambdaMeter
from emulator.azure.meter import GroupSpan

_MB_MS_PER_GB_S = 1024 * 1000
_NS = 10**9


def executions(meter: LambdaMeter) -> Counter[str]:
    """Return how often each call was really executed."""
    return Counter(one.call_id for one in meter.invocations if one.call_id is not None)


def picodollars_of_call(meter: LambdaMeter, call_id: str, book: PriceBook, region: str) -> int:
    return sum(_picodollars(one, book, region) for one in meter.invocations if one.call_id == call_id)


def picodollars_of_calls(meter: LambdaMeter, book: PriceBook, region: str) -> int:
    """Return the cost of all invocations, each line rounded once, without provisioned instances."""
    return sum(_picodollars(one, book, region) for one in meter.invocations)


def _picodollars(one: BilledInvocation, book: PriceBook, region: str) -> int:
    sku = "lambda.provisioned.duration.x86" if one.provisioned else "lambda.duration.x86"
    time = price_line(book.row(sku, region), one.billed_ms * one.memory_mb, _MB_MS_PER_GB_S)
    return time.picodollars + price_line(book.row("lambda.request", region), 1).picodollars


def picodollars_of_groups(spans: Iterable[GroupSpan], book: PriceBook, region: str) -> int:
    return sum(
        total(lines_of(container_parts(book, region, one.cores, one.memory_mb), one.billed_s * _NS))
        for one in spans
    )
