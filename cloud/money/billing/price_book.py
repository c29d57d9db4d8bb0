"""The price book: what things cost, since when, and from which source.

A book is one or more TOML files with a table `[[price]]` for each price and `[[free]]` for each free allowance. A
price that is missing or "unknown" is an error that says so, never free. An operator may add a file of the same form,
for regions that the built-in book lacks; its rows replace the built-in ones and are of the kind "custom", whatever
they say.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from cloud.timing.numbers.table_files import TableEntry, TableFileError, read_tables

PRICES = Path(__file__).resolve().parent.parent / "prices"
PICODOLLARS_PER_USD = 10**12

Kind = Literal["list", "paper", "custom", "unverified"]
_Words = Annotated[str, Field(min_length=1)]
_Source = Annotated[str, Field(min_length=3)]
_CHECKED = ConfigDict(extra="forbid", allow_inf_nan=False)


class UnknownSku(LookupError):
    """There is no price for this SKU; the message names it and similar ones."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownPrice(UnknownSku):
    """The SKU is in the book, but its price is unknown, so it must not count as free."""


class PriceError(TableFileError):
    """A price book has a fault; the message begins with `file:line:` if it was read from a file."""


def _unknown_is_none(value: object) -> object:
    return None if value == "unknown" else value


@dataclass(frozen=True, config=_CHECKED)
class PriceRow:
    """One price of one SKU in one region. `usd` None: unknown. `valid_to` is the last day on which it applies.

    `from_quantity`: this price applies to the units of a month beyond this number.
    """

    sku: _Words
    region: _Words
    unit: _Words
    usd: Annotated[Decimal | None, Field(ge=0), BeforeValidator(_unknown_is_none)]
    as_of: datetime.date
    source: _Source
    kind: Kind
    valid_from: datetime.date | None = None
    valid_to: datetime.date | None = None
    from_quantity: Annotated[int, Field(ge=0)] = 0
    note: str = ""

    @model_validator(mode="after")
    def begins_before_it_ends(self) -> PriceRow:
        if self.first_day > self.last_day:
            raise ValueError(f"valid_to {self.valid_to} is before valid_from {self.valid_from}")
        return self

    @property
    def first_day(self) -> datetime.date:
        return self.valid_from or datetime.date.min

    @property
    def last_day(self) -> datetime.date:
        return self.valid_to or datetime.date.max

    @property
    def price(self) -> Decimal:
        """US dollars for one unit. Raises UnknownPrice."""
        if self.usd is None:
            raise UnknownPrice(self.unknown_words)
        return self.usd

    @property
    def unknown_words(self) -> str:
        return f"the price of {self.sku!r} in {self.region} is unknown: {self.source}"

    @cached_property
    def picodollar_ratio(self) -> tuple[int, int]:
        """Return the picodollars for one unit, exactly, as numerator and denominator. Raises UnknownPrice."""
        exact = Fraction(self.price) * PICODOLLARS_PER_USD
        return exact.numerator, exact.denominator

    def holds(self, on: datetime.date) -> bool:
        return self.first_day <= on <= self.last_day


@dataclass(frozen=True, config=_CHECKED)
class FreeTier:
    """A monthly free allowance of an account: `quantity` units of the named SKUs together."""

    sku: _Words
    region: _Words
    covers: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: _Words
    quantity: Annotated[int, Field(gt=0)]
    as_of: datetime.date
    source: _Source
    kind: Kind
    note: str = ""


_Rows = dict[tuple[str, str], list[PriceRow]]


class PriceBook:
    """Prices by SKU, region and day."""

    def __init__(self, rows: Iterable[PriceRow], free: Iterable[FreeTier] = ()) -> None:
        self._rows: _Rows = {}
        self.free_tiers = tuple(free)
        for row in rows:
            self._add(row)

    @staticmethod
    def load(path: Path = PRICES) -> PriceBook:
        """Return all rows of a file, or of all files in a folder; of the built-in folder with the operator's file on
        top.
        """
        return _with_operators(_operators) if path == PRICES and _operators else PriceBook.read(path)

    @staticmethod
    @cache
    def read(path: Path) -> PriceBook:
        """Return all rows of a file, or of all files in a folder, without the operator's."""
        book = PriceBook(())
        free: list[FreeTier] = []
        lines: dict[int, str] = {}
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            for entry in _entries(file):
                if entry.table == "free":
                    free.append(entry.build(FreeTier))
                    continue
                row = entry.build(PriceRow)
                try:
                    book._add(row, lines)
                except PriceError as error:
                    raise PriceError(f"{entry.where}: {error}") from None
                lines[id(row)] = entry.where
        book.free_tiers = tuple(free)
        return book

    def merge(self, custom: PriceBook) -> PriceBook:
        """Return this book with `custom` on top: a SKU that `custom` prices in a region has only its prices there."""
        rows: _Rows = {**self._rows, **custom._rows}
        free = {tier.sku: tier for tier in (*self.free_tiers, *custom.free_tiers)}
        return PriceBook((row for many in rows.values() for row in many), free.values())

    @cached_property
    def as_of(self) -> datetime.date:
        """Return the latest day on which any of its sources was read."""
        return max(row.as_of for row in self.rows())

    def row(self, sku: str, region: str = "us-east-1", on: datetime.date | None = None) -> PriceRow:
        """Return the price of `sku` in `region` on a day; without a day, on the day the book was last updated.

        Raises UnknownSku if there is none, UnknownPrice if it is listed as unknown. Of several tiers it is the first.
        """
        first = self.tiers(sku, region, on)[0]
        if first.usd is None:
            raise UnknownPrice(first.unknown_words)
        return first

    def tiers(
        self, sku: str, region: str = "us-east-1", on: datetime.date | None = None
    ) -> tuple[PriceRow, ...]:
        """Return all tiers that apply on that day, the first units' price first; some may be unknown."""
        known = self._rows.get((sku, region))
        if known is None:
            raise UnknownSku(f"there is no price for {sku!r} in {region}{self._hint(sku)}")
        day = on or self.as_of
        rows = sorted((row for row in known if row.holds(day)), key=lambda row: row.from_quantity)
        if not rows or rows[0].from_quantity:
            spans = ", ".join(sorted({_span(row) for row in known}))
            raise UnknownSku(f"there is no price for {sku!r} in {region} on {day}; there is one {spans}")
        return tuple(rows)

    def own(self, skus: Iterable[str], region: str) -> list[PriceRow]:
        """Return the rows for these SKUs that the operator gave."""
        rows = (row for sku in sorted(set(skus)) for row in self._rows.get((sku, region), []))
        return [row for row in rows if row.kind == "custom"]

    def rows(self) -> list[PriceRow]:
        """Return every row, including those with unknown prices."""
        return [row for many in self._rows.values() for row in many]

    def _hint(self, sku: str) -> str:
        elsewhere = sorted(place for name, place in self._rows if name == sku)
        if elsewhere:
            return f"; there is one in {', '.join(elsewhere)}"
        near = difflib.get_close_matches(sku, {name for name, _ in self._rows}, n=3)
        return f"; did you mean {' or '.join(near)}?" if near else ""

    def _add(self, row: PriceRow, lines: Mapping[int, str] | None = None) -> None:
        known = self._rows.setdefault((row.sku, row.region), [])
        for other in known:
            same_tier = other.from_quantity == row.from_quantity
            if same_tier and row.first_day <= other.last_day and other.first_day <= row.last_day:
                at = (lines or {}).get(id(other), "another row")
                raise PriceError(f"{row.sku} has two prices in {row.region}, see {at}, valid {_span(other)}")
        known.append(row)


_operators: Path | None = None


def set_operator_prices(path: Path | None) -> None:
    """Use this file's prices in `PriceBook.load()` from now on; None: the built-in ones alone. Raises PriceError."""
    global _operators
    if path is not None:
        _with_operators(path)
    _operators = path


@cache
def _with_operators(path: Path) -> PriceBook:
    theirs = PriceBook.read(path)
    custom = PriceBook((replace(row, kind="custom") for row in theirs.rows()), theirs.free_tiers)
    return PriceBook.read(PRICES).merge(custom)


def _entries(path: Path) -> Iterable[TableEntry]:
    """Yield the tables of a file; a price of several regions becomes one table for each."""
    for entry in read_tables(path, {"price", "free"}, PriceError):
        regions = entry.values.get("region")
        if entry.table == "price" and isinstance(regions, list) and regions:
            for region in regions:
                values: dict[str, Any] = {**entry.values, "region": region}
                yield replace(entry, values=values)
        else:
            yield entry


def _span(row: PriceRow) -> str:
    if row.valid_from is None and row.valid_to is None:
        return "always"
    begin = f"from {row.valid_from}" if row.valid_from else ""
    end = f"to {row.valid_to}" if row.valid_to else ""
    return f"{begin} {end}".strip()
