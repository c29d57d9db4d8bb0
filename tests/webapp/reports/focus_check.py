"""A checker of FOCUS files by the rules of 1.2."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation

from webapp.reports.files.focus_rules import FocusColumn, rules

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_NOT_NULL_WORDS = frozenset({"null", "none", "n/a", "na", "nan", "unknown", "not applicable"})
_SPANS = (("BillingPeriodStart", "BillingPeriodEnd"), ("ChargePeriodStart", "ChargePeriodEnd"))


def problems(lines: Iterable[str], most: int = 50) -> list[str]:
    """The faults of a FOCUS file by the rules of 1.2, a sentence each; empty if it is valid."""
    reader = csv.DictReader(lines)
    found = list(_of_header(list(reader.fieldnames or [])))
    if found:
        return found[:most]
    for number, row in enumerate(reader, start=2):
        found += [f"Line {number}: {words}" for words in _of_row(row)]
        if len(found) >= most:
            break
    return found[:most]


def _of_header(names: list[str]) -> Iterator[str]:
    for column in rules().column:
        if column.level == "mandatory" and column.name not in names:
            yield f"The column {column.name} is missing."
    known = set(rules().names)
    custom = [name for name in names if name not in known]
    for name in custom:
        if not name.startswith("x_"):
            yield f"The column {name} is not one of FOCUS 1.2; one of our own begins with x_."
    if custom and any(name in known for name in names[names.index(custom[0]) :]):
        yield "Columns of our own come after those of FOCUS."
    if len(set(names)) != len(names):
        yield "A column is there twice."


def _of_row(row: Mapping[str, str]) -> Iterator[str]:
    usage = row.get("ChargeCategory") in ("Usage", "Purchase") and row.get("ChargeClass") != "Correction"
    for column in rules().column:
        value = row.get(column.name)
        if value is None:
            continue
        if value == "":
            if not column.nullable or (usage and column.filled_for_usage):
                yield f"{column.name} is empty."
        else:
            yield from _of_value(column, value)
        if column.pair and (value == "") != (row.get(column.pair, "") == ""):
            yield f"{column.name} and {column.pair} are both empty or neither is."
        if column.needs and value and not row.get(column.needs):
            yield f"{column.name} is filled and {column.needs} is not."
    yield from _of_whole(row)


def _of_value(column: FocusColumn, value: str) -> Iterator[str]:
    name = column.name
    if value.lower() in _NOT_NULL_WORDS or value != value.strip():
        yield f"{name} is {value!r}; what is unknown is an empty cell."
    elif column.values and value not in column.values:
        yield f"{name} is {value!r}; it may be {', '.join(column.values)}."
    elif column.kind == "decimal" and not _DECIMAL.fullmatch(value):
        yield f"{name} is {value!r}, which is no decimal number without sign and separators."
    elif column.kind == "moment" and not _is_moment(value):
        yield f"{name} is {value!r}, which is no moment like 2026-01-31T00:00:00Z."
    elif column.kind == "currency" and not _CURRENCY.fullmatch(value):
        yield f"{name} is {value!r}, which is no currency's code."
    elif column.kind == "json" and not _is_document(value):
        yield f"{name} is no JSON object."


def _of_whole(row: Mapping[str, str]) -> Iterator[str]:
    for start, end in _SPANS:
        if _is_moment(row[start]) and _is_moment(row[end]) and row[start] >= row[end]:
            yield f"{start} is not before {end}."
    allowed = rules().subcategories.get(row["ServiceCategory"])
    within = row.get("ServiceSubcategory")
    if within and allowed is not None and within not in allowed:
        yield f"ServiceSubcategory {within!r} is not within {row['ServiceCategory']}."
    for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
        if row.get(price) and row.get("PricingQuantity") and not _agrees(row, price, cost):
            yield f"{cost} is not {price} × PricingQuantity."


def _agrees(row: Mapping[str, str], price: str, cost: str) -> bool:
    """Whether price times quantity is the cost, but for rounding of each charge to a picodollar."""
    try:
        exact, given = Decimal(row[price]) * Decimal(row["PricingQuantity"]), Decimal(row[cost])
    except InvalidOperation:
        return True  # reported already
    return abs(exact - given) <= max(Decimal("1e-6"), abs(given) * Decimal("1e-6"))


def _is_moment(value: str) -> bool:
    if not _MOMENT.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_document(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False
