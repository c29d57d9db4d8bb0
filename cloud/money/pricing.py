"""Prices: how a platform's calls and rented resources become lines of a bill.

Amounts are whole picodollars (1 USD = 10**12), rounded half up once per line. Everything before that rounding is
exact: a price is a decimal, a quantity a ratio of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from cloud.money.billing.price_book import PriceError, PriceRow
from training.engine.messages import Call, Outcome
from training.engine.ports import PriceLine
from training.engine.reports import Usage

_NS_PER_S = 10**9
_MB_PER_GB = 1024
# The papers' month of thirty days; it converts a price by the month into one by the hour.
_S_PER_MONTH = 720 * 3600
_SHOWN_DIGITS = 12
# A call's payload there and its outcome back.
_DETOURS_AT_MOST = 2


def price_line(row: PriceRow, quantity: int, per: int = 1) -> PriceLine:
    """Return the line for `quantity`/`per` units of a row's SKU. This is the only place where money is rounded."""
    numerator, denominator = row.picodollar_ratio
    if per == 1:
        shown = str(quantity)
    else:
        shown = _decimal_text(quantity, per)
        denominator *= per
    # Half up: twice the exact amount and one more, over two.
    picodollars = (2 * quantity * numerator + denominator) // (2 * denominator)
    return PriceLine(row.sku, shown, row.unit, picodollars)


def total(lines: Iterable[PriceLine]) -> int:
    """Return the amount of a bill."""
    return sum(line.picodollars for line in lines)


@dataclass(frozen=True)
class PricedPart:
    """`count`/`per` of a thing that is paid by time, all at the same time: 1 machine, 4 vCPU, 3/2 GB."""

    row: PriceRow
    count: int = 1
    per: int = 1

    def __post_init__(self) -> None:
        _ = self.row.picodollar_ratio, self._ns_per_unit

    @property
    def _ns_per_unit(self) -> int:
        return _seconds_of(self.row.unit, self.row.sku) * _NS_PER_S

    def line(self, duration_ns: int) -> PriceLine:
        return price_line(self.row, self.count * duration_ns, self.per * self._ns_per_unit)


def lines_of(parts: Iterable[PricedPart], duration_ns: int) -> tuple[PriceLine, ...]:
    return tuple(part.line(duration_ns) for part in parts)


class CallPrice(Protocol):
    """The price of calls at one place. No bill within the caps exceeds its `worst_case`."""

    def worst_case(self, call: Call) -> int: ...

    def lines(self, call: Call, usage: Usage) -> tuple[PriceLine, ...] | None:
        """Return the bill; None if the call costs something and the amount is unknown."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class FunctionPrice:
    """Functions billed by started millisecond times memory, start-up included, plus a fee for each request.

    `provisioned`: the price of time on provisioned instances, whose own rent is a StandingResource. `storage`: paid
    once for each payload that goes by storage, written by one side and read by the other.
    """

    duration: PriceRow
    request: PriceRow | None
    start_cap_s: float
    provisioned: PriceRow | None = None
    storage: tuple[PriceRow, ...] = ()

    def __post_init__(self) -> None:
        for row in (self.duration, self.request, self.provisioned, *self.storage):
            _ = row and row.picodollar_ratio

    def worst_case(self, call: Call) -> int:
        """Start-up and run are both capped. Which kind of instance takes the call is not known yet, so the dearer one
        counts.
        """
        longest_ms = _started_ms(self.start_cap_s + call.deadline_s)
        kinds = [self.duration] if self.provisioned is None else [self.duration, self.provisioned]
        detours = total(self._detours(_DETOURS_AT_MOST))
        return detours + max(total(self._lines(row, call.memory_mb, longest_ms)) for row in kinds)

    def lines(self, call: Call, usage: Usage) -> tuple[PriceLine, ...] | None:
        """Nothing billed means that the call never began, so there is no request to pay either."""
        if usage.billed_s is None:
            return None
        row = self.provisioned if self.provisioned is not None and usage.provisioned else self.duration
        if not usage.billed_s:
            return self._detours(usage.detours)
        return self._lines(row, call.memory_mb, _started_ms(usage.billed_s)) + self._detours(usage.detours)

    def _detours(self, count: int) -> tuple[PriceLine, ...]:
        return tuple(price_line(row, count) for row in self.storage if count)

    def _lines(self, duration: PriceRow, memory_mb: int, started_ms: int) -> tuple[PriceLine, ...]:
        time_line = price_line(duration, started_ms * memory_mb, 1000 * _MB_PER_GB)
        return (time_line,) if self.request is None else (time_line, price_line(self.request, 1))


@dataclass(frozen=True)
class RunningPrice:
    """Functions of a fixed size, billed by started millisecond while they run: a learner with a share of a GPU."""

    parts: tuple[PricedPart, ...]
    start_cap_s: float
    request: PriceRow | None = None

    def worst_case(self, call: Call) -> int:
        return total(self._lines(self.start_cap_s + call.deadline_s))

    def lines(self, call: Call, usage: Usage) -> tuple[PriceLine, ...] | None:
        if usage.billed_s is None:
            return None
        return self._lines(usage.billed_s) if usage.billed_s > 0 else ()

    def _lines(self, seconds: float) -> tuple[PriceLine, ...]:
        fee = () if self.request is None else (price_line(self.request, 1),)
        return lines_of(self.parts, _started_ms(seconds) * 10**6) + fee


@dataclass(frozen=True)
class RentPrice:
    """A resource that is paid for as long as it exists, from the job's first call on.

    `round_up_s`: its time is billed by started units of so many seconds; 0: to the nanosecond.
    """

    resource: str
    parts: tuple[PricedPart, ...]
    round_up_s: int = 0

    @property
    def skus(self) -> str:
        return " + ".join(part.row.sku for part in self.parts)

    def billed_ns(self, duration_ns: int) -> int:
        """Return the time that is paid for `duration_ns`."""
        unit_ns = self.round_up_s * _NS_PER_S
        return -(-duration_ns // unit_ns) * unit_ns if unit_ns else duration_ns

    def lines(self, duration_ns: int) -> tuple[PriceLine, ...]:
        """Return the rent for this long, one line for each part."""
        return lines_of(self.parts, self.billed_ns(duration_ns))


def group_resource(number: int) -> str:
    """Return the name of a run's n-th group on its bill."""
    return f"actor_group-{number}"


@dataclass(frozen=True)
class PoolPrice:
    """Actors of a pool that grows with the calls in flight: each is paid from its order until it is given up.

    There are at most `most`; one that had no work for `idle_s` is given up. `parts` are those of one actor.

    `in_groups`: the platform orders whole groups by itself, and reports when one is certainly gone
    (cloud.money.rents.payer). A group is billed by started seconds.
    """

    parts: tuple[PricedPart, ...]
    most: int
    idle_s: float
    in_groups: bool = False

    def actor_rent(self, number: int) -> RentPrice:
        return RentPrice(f"actor-{number}", self.parts)

    def group(self, number: int, actors: int) -> RentPrice:
        """Return the resource of a group: this many actors that start and end together."""
        parts = tuple(replace(part, count=part.count * actors) for part in self.parts)
        return RentPrice(group_resource(number), parts, round_up_s=1)


@dataclass(frozen=True)
class Tariff:
    """The prices of a platform's calls. None: such calls cost nothing themselves, because their machine's rent pays.

    For every call and outcome whose bill keeps to the caps, the sum of `lines` is at most `worst_case`.
    `rents_while_held`: the platform says when its rents begin and end (cloud.money.rents.payer). Otherwise they last
    from the job's first call to its end.
    """

    actor: CallPrice | None = None
    learner: CallPrice | None = None
    rents: tuple[RentPrice, ...] = ()
    pool: PoolPrice | None = None
    rents_while_held: bool = False

    def worst_case(self, call: Call) -> int:
        price = self._price_of(call)
        return price.worst_case(call) if price is not None else 0

    def lines(self, call: Call, outcome: Outcome) -> tuple[PriceLine, ...] | None:
        """Return the bill of an outcome; None if it costs something and the amount is unknown."""
        price = self._price_of(call)
        if price is None or outcome.status == "refused":
            return ()
        return price.lines(call, outcome.usage)

    def _price_of(self, call: Call) -> CallPrice | None:
        return self.actor if call.where == "actor" else self.learner


def _started_ms(seconds: float) -> int:
    # Rounded first: 0.123 s is 123 ms, though 0.123 * 1000 is a little more in floating point.
    return math.ceil(round(seconds * 1000, 6))


@cache
def _seconds_of(unit: str, sku: str) -> int:
    """Return the seconds in a unit of rent: `h`, `vCPU-h`, `GB-s`, `month`."""
    seconds = {"h": 3600, "s": 1, "month": _S_PER_MONTH}.get(unit.rpartition("-")[2])
    if seconds is None:
        raise PriceError(f"{sku} is priced per {unit}, which is not a unit of time")
    return seconds


def _decimal_text(quantity: int, per: int) -> str:
    """Return quantity/per as a decimal: all its digits where they end soon, else rounded to twelve."""
    factor, digits = _decimal_scale(per)
    scaled = quantity * factor if factor else (2 * quantity * 10**digits + per) // (2 * per)
    text = str(scaled)
    if len(text) <= digits:
        text = text.zfill(digits + 1)
    return f"{text[:-digits]}.{text[-digits:]}".rstrip("0").rstrip(".")


@cache
def _decimal_scale(per: int) -> tuple[int, int]:
    """Return (factor, digits) with 1/per = factor / 10**digits, factor 0 where the digits never end."""
    for digits in range(1, 25):
        if 10**digits % per == 0:
            return 10**digits // per, digits
    return 0, _SHOWN_DIGITS
