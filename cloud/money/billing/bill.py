"""The sum of a run's price lines, by category and SKU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from cloud.money.pricing import CallPrice, Tariff
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.virtual_time import billed_ms
from training.engine.messages import Call
from training.engine.ports import PriceLine, Reservation, Room, Settlement
from training.engine.reports import Spend, Usage

_NO_END = 10**30
# Copied for each length of a call: making a new one takes longer than pricing it.
_NOTHING_USED = Usage()


@cache
def _call_of_size(where: str, memory_mb: int) -> Call:
    """Return a call with the only property that prices depend on: the size of its function."""
    seen: dict[str, Any] = {"where": where, "memory_mb": memory_mb}
    return Call.model_construct(**seen)


def lines_of_call(
    price: CallPrice, where: str, memory_mb: int, ms: int, *, provisioned: bool = False, detours: int = 0
) -> tuple[PriceLine, ...]:
    """Return the lines of a call that is billed for so many milliseconds."""
    usage = _NOTHING_USED.model_copy(
        update={"billed_s": ms / 1000, "provisioned": provisioned, "detours": detours}
    )
    return price.lines(_call_of_size(where, memory_mb), usage) or ()


_Call = tuple[str, str, int, int, bool, int]
"""Category, place, memory, billed milliseconds, whether on provisioned capacity, number of detours."""


@dataclass
class BillLine:
    """The sum of one category's lines with one SKU. `lines` counts how often it was rounded."""

    category: str
    sku: str
    unit: str
    quantity: Decimal = Decimal(0)
    picodollars: int = 0
    lines: int = 0


@dataclass
class Bill:
    """Sums by category (the kind of a call, or what was rented) and SKU."""

    _lines: dict[tuple[str, str], BillLine] = field(default_factory=dict)
    _calls: Counter[_Call] = field(default_factory=Counter)
    _tariff: Tariff | None = None

    @staticmethod
    def of(settlements: Iterable[Settlement]) -> Bill:
        """Return the bill of a ledger's settlements."""
        bill = Bill()
        for settlement in settlements:
            bill.book(settlement)
        return bill

    @property
    def picodollars(self) -> int:
        return sum(line.picodollars for line in self.lines)

    @property
    def lines(self) -> list[BillLine]:
        self._price_calls()
        return [self._lines[key] for key in sorted(self._lines)]

    def add(self, category: str, lines: Iterable[PriceLine], times: int = 1) -> None:
        for line in lines:
            entry = self._lines.get((category, line.sku))
            if entry is None:
                entry = self._lines[category, line.sku] = BillLine(category, line.sku, line.unit)
            entry.quantity += Decimal(line.quantity) * times
            entry.picodollars += line.picodollars * times
            entry.lines += times

    def include(self, other: Bill) -> None:
        """Add another bill to this one."""
        for line in other.lines:
            key = line.category, line.sku
            entry = self._lines.setdefault(key, BillLine(*key, line.unit))
            entry.quantity += line.quantity
            entry.picodollars += line.picodollars
            entry.lines += line.lines

    def add_call(self, tariff: Tariff, call: SimulatedCall) -> None:
        """Add a simulated call by its billed time. All calls of a bill have one tariff."""
        work = call.work
        if (tariff.actor if work.where == "actor" else tariff.learner) is not None:
            self._tariff = tariff
            billed = billed_ms(call.billed_ns)
            what = work.kind, work.where, work.memory_mb, billed, call.provisioned, call.detours
            self._calls[what] += 1

    def _price_calls(self) -> None:
        """Price each size and length of a call once; there are fewer of these than calls."""
        calls, self._calls = self._calls, Counter()
        for (kind, where, memory_mb, billed, provisioned, detours), times in calls.items():
            assert self._tariff is not None
            price = self._tariff.actor if where == "actor" else self._tariff.learner
            assert price is not None
            lines = lines_of_call(price, where, memory_mb, billed, provisioned=provisioned, detours=detours)
            self.add(kind, lines, times)

    def book(self, settlement: Settlement) -> None:
        """Add a settlement. One that was booked in full because its true cost is unknown has no lines."""
        work, resource = settlement.usage.get("work"), str(settlement.usage.get("resource", "unknown"))
        category = str(work["kind"]) if isinstance(work, dict) else _without_number(resource)
        self.add(category, settlement.lines)
        unknown = settlement.picodollars - sum(line.picodollars for line in settlement.lines)
        if unknown:
            self.add(category, [PriceLine("assumed", "1", "call", unknown)])


class BookedLedger:
    """Implements `training.engine.ports.Ledger` without a limit, and writes a bill."""

    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    def reserve(self, batch: Sequence[Reservation]) -> list[bool]:
        return [True] * len(batch)

    def settle(self, batch: Sequence[Settlement]) -> None:
        for settlement in batch:
            self._bill.book(settlement)

    def release(self, ids: Sequence[str]) -> None:
        pass

    def headroom(self) -> int:
        return _NO_END

    def room(self) -> Room:
        return Room(_NO_END, "no budget")

    def spend(self) -> Spend:
        return Spend(
            spent_picodollars=self._bill.picodollars, reserved_picodollars=0, limit_picodollars=_NO_END
        )


def _without_number(resource: str) -> str:
    """Return the resource without its number: all actors of a pool are one line of the bill."""
    name, _, number = resource.rpartition("-")
    return f"{name}s" if number.isdigit() else resource
