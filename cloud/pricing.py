"""What things cost: a book of dated prices, and how a platform's calls become lines of a bill.

Prices are decimals in US dollars; amounts are whole picodollars (1 USD = 10**12), rounded half up once per line.
Whatever is not in the book is an error that names it, never free.
"""

from __future__ import annotations

import datetime
import difflib
import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from training.frozen import Frozen
from training.messages import Call, Outcome
from training.ports import PriceLine

PRICES = Path(__file__).resolve().parent / "prices"
PICODOLLARS_PER_USD = 10**12

_EXACT = Context(prec=60)
_MB_PER_GB = 1024


class UnknownSku(LookupError):
    """There is no price for this; the message names it and what is near."""

    def __str__(self) -> str:
        return str(self.args[0])


class PriceError(ValueError):
    """A file of prices says something impossible; the message names file and row."""


class PriceRow(Frozen):
    """One price of one thing in one region, and where we have it from."""

    sku: str = Field(min_length=1)
    region: str = Field(min_length=1)
    unit: str = Field(min_length=1)
    usd: Decimal = Field(ge=0)
    as_of: datetime.date
    source: str = Field(min_length=3)
    kind: Literal["list", "paper", "custom", "unverified"]


class PriceBook:
    """Prices by SKU and region."""

    def __init__(self, rows: Iterable[PriceRow]) -> None:
        self._rows: dict[tuple[str, str], PriceRow] = {}
        for row in rows:
            if (row.sku, row.region) in self._rows:
                raise PriceError(f"{row.sku} has two prices in {row.region}")
            self._rows[row.sku, row.region] = row

    @staticmethod
    @cache
    def load(folder: Path = PRICES) -> PriceBook:
        """All rows of all files in `folder`."""
        return PriceBook(row for path in sorted(folder.glob("*.toml")) for row in _read(path))

    def row(self, sku: str, region: str = "us-east-1") -> PriceRow:
        """The price of `sku` in `region`, or UnknownSku."""
        found = self._rows.get((sku, region))
        if found is None:
            elsewhere = sorted(place for name, place in self._rows if name == sku)
            near = difflib.get_close_matches(sku, {name for name, _ in self._rows}, n=3)
            hint = f"; there is one in {', '.join(elsewhere)}" if elsewhere else ""
            hint = hint or (f"; did you mean {' or '.join(near)}?" if near else "")
            raise UnknownSku(f"there is no price for {sku!r} in {region}{hint}")
        return found

    def rows(self) -> list[PriceRow]:
        return list(self._rows.values())


def _read(path: Path) -> list[PriceRow]:
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal).get("price", [])
    except tomllib.TOMLDecodeError as error:
        raise PriceError(f"{path.name}: {error}") from None
    rows = []
    for number, entry in enumerate(entries, start=1):
        try:
            rows.append(PriceRow.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise PriceError(
                f"{path.name}: row {number} ({entry.get('sku', 'no sku')}): {where}: {first['msg']}"
            ) from None
    return rows


def price_line(row: PriceRow, quantity: Decimal) -> PriceLine:
    """`quantity` units of a row's SKU: the one place where money is rounded."""
    exact = _EXACT.multiply(_EXACT.multiply(row.usd, Decimal(PICODOLLARS_PER_USD)), quantity)
    picodollars = int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP, context=_EXACT))
    return PriceLine(row.sku, f"{quantity.normalize(_EXACT):f}", row.unit, picodollars)


def usd(picodollars: int) -> str:
    """An amount for people: `$1.25`, with as many digits as small amounts need."""
    amount = Decimal(picodollars) / PICODOLLARS_PER_USD
    digits = 2 if amount == 0 or abs(amount) >= 1 else min(12, 2 - amount.adjusted())
    return f"${amount:.{digits}f}"


@dataclass(frozen=True)
class FunctionPrice:
    """Functions billed by started millisecond times memory, start-up included, plus a fee for each request."""

    duration: PriceRow
    request: PriceRow
    start_cap_s: float

    def worst_case(self, call: Call) -> int:
        """Start-up and run are both capped where the call runs, so no bill can be higher than this."""
        return _total(self._lines(call, self.start_cap_s + call.deadline_s))

    def lines(self, call: Call, billed_s: float) -> tuple[PriceLine, ...]:
        """Nothing billed means that it never began, so that there is no request to pay either."""
        return self._lines(call, billed_s) if billed_s > 0 else ()

    def _lines(self, call: Call, seconds: float) -> tuple[PriceLine, ...]:
        # Rounded first: 0.123 s is 123 ms, though 0.123 * 1000 is a little more in floating point.
        started_ms = math.ceil(round(seconds * 1000, 6))
        gb_s = Decimal(started_ms * call.memory_mb) / (1000 * _MB_PER_GB)
        return price_line(self.duration, gb_s), price_line(self.request, Decimal(1))


@dataclass(frozen=True)
class Standing:
    """A resource that is paid for as long as it stands: from the job's start or from its first learner call."""

    resource: str
    row: PriceRow
    begins: Literal["at_once", "learner_call"]

    def line(self, duration_ns: int) -> PriceLine:
        """Rent for this long; the row is priced by the hour."""
        return price_line(self.row, _EXACT.divide(Decimal(duration_ns), Decimal(3600 * 10**9)))


@dataclass(frozen=True)
class Tariff:
    """How a platform's calls are priced. None: such calls cost nothing of their own, their machine's rent pays.

    For every call and outcome whose bill keeps to the caps, the sum of `lines` is at most `worst_case`.
    """

    actor: FunctionPrice | None = None
    learner: FunctionPrice | None = None
    standing: tuple[Standing, ...] = field(default=())

    def worst_case(self, call: Call) -> int:
        price = self._price_of(call)
        return price.worst_case(call) if price is not None else 0

    def lines(self, call: Call, outcome: Outcome) -> tuple[PriceLine, ...] | None:
        """The bill of an outcome; None when it costs something and nobody knows how much."""
        price = self._price_of(call)
        if price is None or outcome.status == "refused":
            return ()
        billed_s = outcome.usage.billed_s
        return price.lines(call, billed_s) if billed_s is not None else None

    def _price_of(self, call: Call) -> FunctionPrice | None:
        return self.actor if call.where == "actor" else self.learner


def _total(lines: Iterable[PriceLine]) -> int:
    return sum(line.picodollars for line in lines)
