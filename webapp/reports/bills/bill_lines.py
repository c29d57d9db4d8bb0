"""Reads clouds' bills as CSV, line by line. The meaning of columns is data (bill_layouts.toml)."""

from __future__ import annotations

import csv
import json
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

from pydantic import Field

from training.base_model import FrozenModel
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.reports.bills.bill_file import BillRefused, BillText
from webapp.reports.sold_services import AWS, MICROSOFT

MOST_ROWS = 5_000_000
_MOST_COLUMNS = 2000
_LONGEST_CELL = 131_072
# More than any line costs, and less than the table's whole picodollars can hold.
_MOST_USD = 9_000_000
_LAYOUTS = Path(__file__).with_name("bill_layouts.toml")
_DATES = ("%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y")
_UNREADABLE = (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error)
_AZURE_SERVICES = ("Azure Container Instances", "Azure Virtual Machines")


class Layout(FrozenModel):
    """One layout of bills; bill_layouts.toml explains the fields."""

    key: str
    title: str
    known_by: tuple[str, ...]
    provider: str = ""
    account: tuple[str, ...]
    period: tuple[str, ...]
    start: tuple[str, ...]
    cost: tuple[str, ...]
    currency: tuple[str, ...]
    service: tuple[str, ...]
    what: tuple[str, ...]
    resource: tuple[str, ...]
    kind: tuple[str, ...]
    kinds: tuple[str, ...]
    tags: tuple[str, ...] = ()
    tag_columns: str = ""


class _Layouts(FrozenModel):
    layout: tuple[Layout, ...] = Field(min_length=1)
    services: dict[str, str]


@dataclass(frozen=True)
class CloudCharge:
    """One charge of a cloud. `service` is our name for the service, empty for services that Starling does not use.

    `period` is the first day of the account's billing period; `account` is empty if the file does not name it.
    """

    account: str
    period: date
    day: date
    provider: str
    service: str
    billed_service_name: str
    what: str
    resource: str
    tags: Mapping[str, str]
    picodollars: int


@cache
def _known() -> _Layouts:
    return _Layouts.model_validate(tomllib.loads(_LAYOUTS.read_text(encoding="utf-8")))


@cache
def _services() -> dict[str, str]:
    return {theirs.lower(): ours for theirs, ours in _known().services.items()}


OUR_SERVICES = frozenset(_known().services.values())


def layouts() -> tuple[Layout, ...]:
    return _known().layout


def read_lines(text: BillText) -> tuple[Layout, Iterator[CloudCharge | None]]:
    """The layout and the lines; None for a line that is no usage. Raises BillRefused, also while lines are read.

    Clouds deliver a large bill in parts. Joined to one file they repeat the header, which is skipped.
    """
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(text)
    try:
        header = next(reader, [])
    except _UNREADABLE as error:
        raise BillRefused(
            f"This is no CSV file ({error}). Export the bill as CSV, packed by gzip or not."
        ) from None
    if len(header) > _MOST_COLUMNS:
        raise BillRefused(
            f"It has {len(header):,} columns; a bill has at most {_MOST_COLUMNS:,}. Export it again."
        )
    places = {name.strip().lower(): at for at, name in enumerate(header)}
    for layout in layouts():
        if all(name.lower() in places for name in layout.known_by):
            return layout, _lines(text, reader, header, _Reading(layout, places))
    known = ", ".join(layout.title for layout in layouts())
    raise BillRefused(f"Its columns match no known layout of bills. Known layouts: {known}.")


def _lines(
    text: BillText, reader: Iterator[list[str]], header: list[str], read: _Reading
) -> Iterator[CloudCharge | None]:
    number = 1
    while True:
        number += 1
        text.begin_record()
        try:
            row = next(reader)
        except StopIteration:
            return
        except _UNREADABLE as error:
            raise BillRefused(f"Line {number} cannot be read ({error}).") from None
        if number > MOST_ROWS:
            raise BillRefused(f"The file has more than {MOST_ROWS:,} lines. Export it by month.")
        repeats_header = row[1:] == header[1:]  # its first cell may begin with a byte order mark
        if row and not repeats_header:
            yield read.line(row, number)


class _Reading:
    """A layout applied to the columns of one file."""

    def __init__(self, layout: Layout, places: Mapping[str, int]) -> None:
        self.layout = layout
        self._accounts = [places[name.lower()] for name in layout.account if name.lower() in places]
        self._tag_columns = {
            _tag_name(name[len(layout.tag_columns) :]): at
            for name, at in places.items()
            if layout.tag_columns and name.startswith(layout.tag_columns.lower())
        }
        fields = ("period", "start", "cost", "currency", "service", "what", "resource", "kind", "tags")
        self._at = {name: self._place(name, places) for name in fields}
        self._in_usd = places.get("costinusd") == self._at["cost"]
        self._provider = places.get("providername")

    def _place(self, field: str, places: Mapping[str, int]) -> int | None:
        candidates = getattr(self.layout, field)
        return next((places[name.lower()] for name in candidates if name.lower() in places), None)

    def line(self, row: list[str], number: int) -> CloudCharge | None:
        def cell(field: str) -> str:
            at = self._at[field]
            return row[at].strip() if at is not None and at < len(row) else ""

        if cell("kind") and cell("kind") not in self.layout.kinds:
            return None
        currency = "USD" if self._in_usd else cell("currency") or "USD"
        if currency != "USD":
            raise BillRefused(
                f"Line {number} is in {currency[:20]}. Prices here are in US dollars; export the bill in USD."
            )
        billed_as = cell("service")
        service = _services().get(billed_as.lower(), "")
        day = _day(cell("start"), number)
        period = cell("period")
        return CloudCharge(
            account=self._account(row),
            period=_day(period, number) if period else day.replace(day=1),
            day=day,
            provider=self._provider_of(row, service),
            service=service,
            billed_service_name=billed_as[:100],
            what=cell("what")[:200],
            resource=cell("resource")[:500],
            tags=self._tags(row, cell("tags")),
            picodollars=_picodollars(cell("cost"), number),
        )

    def _provider_of(self, row: list[str], service: str) -> str:
        if self.layout.provider:
            return self.layout.provider
        publisher = row[self._provider] if self._provider is not None and self._provider < len(row) else ""
        azure = service in _AZURE_SERVICES or publisher.lower().startswith(("microsoft", "azure"))
        return (
            MICROSOFT
            if azure
            else AWS
            if not publisher or publisher.lower().startswith(("aws", "amazon"))
            else publisher[:30]
        )

    def _account(self, row: list[str]) -> str:
        """The account that used the service, or else the one that pays."""
        named = (row[at].strip() for at in self._accounts if at < len(row))
        return next(filter(None, named), "").lower().removeprefix("/subscriptions/")[:100]

    def _tags(self, row: list[str], document: str) -> dict[str, str]:
        own_tags = {name: row[at] for name, at in self._tag_columns.items() if at < len(row) and row[at]}
        if document:
            # Azure omits the braces.
            text = document if document.startswith("{") else f"{{{document}}}"
            try:
                tags = json.loads(text)
            except (ValueError, RecursionError):
                return own_tags
            own_tags |= {_tag_name(str(name)): str(value) for name, value in tags.items()}
        return own_tags


def _tag_name(column: str) -> str:
    """Our name of a tag. AWS exports `starling:run` as user:starling:run, user_starling_run or starling_run."""
    name = column.strip().lower().removeprefix("user:").removeprefix("user_")
    return name.replace("starling_", "starling:", 1) if name.startswith("starling_") else name


def _day(text: str, number: int) -> date:
    """The UTC day."""
    head = text[:10]
    for pattern in _DATES:
        try:
            return datetime.strptime(head, pattern).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    raise BillRefused(f"Line {number} has the date {text[:40]!r}, which is none.")


def _picodollars(text: str, number: int) -> int:
    try:
        usd = Decimal(text or "0")
        # Before it is multiplied: the digits of 1e999999 would be written out.
        if not usd.is_finite() or usd.adjusted() > len(str(_MOST_USD)) or abs(usd) > _MOST_USD:
            raise ValueError(text)
        return int((usd * PICODOLLARS_PER_USD).to_integral_value(ROUND_HALF_UP))
    except (ArithmeticError, ValueError):
        raise BillRefused(
            f"Line {number} costs {text[:40]!r}, which is no number that a line costs."
        ) from None
