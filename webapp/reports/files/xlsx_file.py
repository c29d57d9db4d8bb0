"""A report as an Excel workbook: real numbers under a header that stays, totals, and no text that is run as a formula.

Excel keeps 15 digits of a number, so the sheet About has the total as text too, exact whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from webapp.money.amounts import PICODOLLARS_PER_USD, exact_usd
from webapp.reports.bills.difference import metered_sentence
from webapp.reports.calls import calls
from webapp.reports.columns import (
    BASES,
    COST_OF_CALL,
    BillColumn,
    call_cells,
    call_columns,
    heading,
    prices_sentence,
    table_cells,
    table_columns,
)
from webapp.reports.table import Costs

ROWS_A_SHEET = 1_000_000
"""Excel itself stops at 1,048,576."""
_REPORT_EVERY = 2000
_OPTIONS = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
_CURRENCY = "$#,##0.00??????????"
_WIDTHS = {"text": 24, "money": 22, "count": 12}
OnProgress = Callable[[int], None]


def write(costs: Costs, path: Path, whose: str, on_progress: OnProgress = lambda rows: None) -> None:
    """Write the file. `on_progress` gets the number of rows done."""
    with Workbook(str(path), {**_OPTIONS, "tmpdir": str(path.parent)}) as book:
        looks = _Looks(book)
        table = costs.table()
        columns = table_columns(table)
        rows = (table_cells(table, row, costs.question) for row in table.rows)
        sheet = _sheet(book, looks, f"By {table.title.lower()}", columns)
        last = _fill(sheet, looks, columns, rows)
        _row(sheet, looks, columns, last + 1, table_cells(table, table.total, costs.question), bold=True)
        if costs.question.by == "call":
            _calls(book, looks, costs, on_progress)
        _about(book, looks, costs, whose)


class _Looks:
    """The book's formats."""

    def __init__(self, book: Workbook) -> None:
        self.head: Format = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        self.head_right: Format = book.add_format({"bold": True, "bottom": 1, "align": "right"})
        self.bold: Format = book.add_format({"bold": True, "top": 1})
        self.money: Format = book.add_format({"num_format": _CURRENCY})
        self.money_bold: Format = book.add_format({"num_format": _CURRENCY, "bold": True, "top": 1})
        self.count: Format = book.add_format({"num_format": "#,##0"})
        self.count_bold: Format = book.add_format({"num_format": "#,##0", "bold": True, "top": 1})

    def of(self, kind: str, bold: bool) -> Format | None:
        if kind == "text":
            return self.bold if bold else None
        name = f"{kind}_bold" if bold else kind
        format_: Format = getattr(self, name)
        return format_


def dollars(picodollars: int) -> float:
    """The nearest number that a spreadsheet can hold."""
    return picodollars / PICODOLLARS_PER_USD


def _sheet(book: Workbook, looks: _Looks, name: str, columns: Sequence[BillColumn]) -> Worksheet:
    sheet: Worksheet = book.add_worksheet(name)
    sheet.freeze_panes(1, 0)
    for at, column in enumerate(columns):
        sheet.set_column(at, at, _WIDTHS[column.kind])
        sheet.write_string(0, at, column.name, looks.head if column.kind == "text" else looks.head_right)
    return sheet


def _fill(
    sheet: Worksheet, looks: _Looks, columns: Sequence[BillColumn], rows: Iterable[Sequence[Any]]
) -> int:
    """Write rows below the header; returns the number of the last row."""
    at = 0
    for at, row in enumerate(rows, start=1):
        _row(sheet, looks, columns, at, row)
    return at


def _row(
    sheet: Worksheet,
    looks: _Looks,
    columns: Sequence[BillColumn],
    at: int,
    cells: Sequence[Any],
    *,
    bold: bool = False,
) -> None:
    for number, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        look = looks.of(column.kind, bold)
        if cell is None:
            sheet.write_blank(at, number, None, look)
        elif column.kind == "money":
            sheet.write_number(at, number, dollars(cell), look)
        elif column.kind == "count":
            sheet.write_number(at, number, cell, look)
        else:
            # Never `write`, which guesses types: a text stays a text whatever it begins with.
            sheet.write_string(at, number, str(cell), look)


def _calls(book: Workbook, looks: _Looks, costs: Costs, on_progress: OnProgress) -> None:
    """Write the calls on as many sheets as they need, with the total below the last."""
    wanted = _differing_columns(costs)
    columns = [call_columns(costs)[at] for at in wanted]
    cost_at = wanted.index(COST_OF_CALL)
    kinds = [column.kind for column in columns]
    calls_left = calls(costs)
    total = done = number = 0
    while True:
        number += 1
        sheet = _sheet(book, looks, "Calls" if number == 1 else f"Calls {number}", columns)
        last = 0
        for last, call in enumerate(islice(calls_left, ROWS_A_SHEET), start=1):
            cells = call_cells(call)
            for at, (place, kind) in enumerate(zip(wanted, kinds, strict=True)):
                if kind == "text":
                    sheet.write_string(last, at, cells[place])
                elif kind == "count":
                    sheet.write_number(last, at, cells[place], looks.count)
            sheet.write_number(last, cost_at, dollars(call.picodollars), looks.money)
            if costs.has_bill and call.metered is not None:
                sheet.write_number(last, len(wanted) - 1, dollars(call.metered), looks.money)
            total += call.picodollars
            if last % _REPORT_EVERY == 0:
                on_progress(done + last)
        done += last
        if last < ROWS_A_SHEET:
            sheet.write_string(last + 1, 0, "Total", looks.bold)
            sheet.write_number(last + 1, cost_at, dollars(total), looks.money_bold)
            sheet.autofilter(0, 0, last, len(columns) - 1)
            return


def _differing_columns(costs: Costs) -> list[int]:
    """Columns whose values differ between jobs. Values that all rows share are written once, on the sheet About."""
    jobs = list(costs.facts.values())
    places = {1: "project", 4: "user", 5: "cloud", 6: "region", 7: "tags"}
    same = {at for at, name in places.items() if len({getattr(job, name) for job in jobs}) < 2}
    columns = call_columns(costs)
    return [at for at in range(len(columns)) if at not in same and columns[at].name != "prices"]


def _about(book: Workbook, looks: _Looks, costs: Costs, whose: str) -> None:
    sheet: Worksheet = book.add_worksheet("About")
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 1, 80)
    for at, (name, words) in enumerate(_facts(costs, whose)):
        sheet.write_string(at, 0, name, looks.head)
        sheet.write_string(at, 1, words)


def _facts(costs: Costs, whose: str) -> Iterator[tuple[str, str]]:
    question = costs.question
    yield "Report", heading(question, whose)
    yield "Period", f"{question.period}, UTC, both days included"
    yield "Prices", prices_sentence(question)
    yield "Total, exact [USD]", exact_usd(costs.total)
    for name, value in question.filters.items():
        yield f"Only {name}", value
    for name in ("project", "user", "cloud", "region"):
        values = sorted({getattr(job, name) for job in costs.facts.values()})
        if len(values) == 1 and values[0]:
            yield name.capitalize(), values[0]
    for name, words in BASES.items():
        yield name.capitalize(), words
    if costs.has_bill:
        yield "Beside the bill", metered_sentence(costs)
