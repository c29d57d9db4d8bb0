"""A report as CSV, streamed: exact dollars, and no cell that a spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from webapp.jobs.billing.cost_csv import harmless
from webapp.money.amounts import exact_usd
from webapp.reports.calls import SettledCall, calls
from webapp.reports.columns import (
    COST_OF_CALL,
    BillColumn,
    call_cells,
    call_columns,
    table_cells,
    table_columns,
)
from webapp.reports.table import Costs

LINES_AT_ONCE = 1000
OnProgress = Callable[[int], None]


def pieces(costs: Costs, on_progress: OnProgress = lambda rows: None) -> Iterator[str]:
    """The file in pieces of text. `on_progress` gets the number of rows done."""
    yield from _calls(costs, on_progress) if costs.question.by == "call" else _table(costs)


def text_of(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as lines of CSV."""
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _table(costs: Costs) -> Iterator[str]:
    table = costs.table()
    columns = table_columns(table)
    yield text_of([[column.name for column in columns]])
    rows = (
        _format_cells(columns, table_cells(table, row, costs.question)) for row in (*table.rows, table.total)
    )
    yield text_of(rows)


def _format_cells(columns: Sequence[BillColumn], cells: Sequence[Any]) -> list[Any]:
    return [
        _amount(cell) if column.kind == "money" else harmless(cell)
        for column, cell in zip(columns, cells, strict=True)
    ]


def _amount(picodollars: int | None) -> str:
    return "" if picodollars is None else exact_usd(picodollars)


def _calls(costs: Costs, on_progress: OnProgress) -> Iterator[str]:
    yield text_of([[column.name for column in call_columns(costs)]])
    calls_left = calls(costs)
    total = metered = done = 0
    texts: dict[str, tuple[str, ...]] = {}
    while batch := list(islice(calls_left, LINES_AT_ONCE)):
        total += sum(call.picodollars for call in batch)
        metered += sum(call.metered or 0 for call in batch)
        done += len(batch)
        yield text_of(_line(call, texts, costs.has_bill) for call in batch)
        on_progress(done)
    blanks = [""] * (COST_OF_CALL - 1)
    last = ["total", *blanks, exact_usd(total), "", costs.question.prices]
    yield text_of([[*last, exact_usd(metered)] if costs.has_bill else last])


def _line(call: SettledCall, texts: dict[str, tuple[str, ...]], has_bill: bool) -> tuple[Any, ...]:
    """A row of CSV. Cells that all lines of a job share are computed once for each job."""
    job = call.facts.id or f"{call.facts.project_id} {call.facts.provider}"
    known = texts.get(job)
    if known is None:
        common = call_cells(call)
        known = texts[job] = tuple(map(harmless, (*common[1:8], call.facts.prices)))
    return (
        *(call.at, *known[:-1], call.round_no, call.epoch, harmless(call.name), call.kind),
        *(exact_usd(call.picodollars), call.basis, known[-1]),
        *((_amount(call.metered),) if has_bill else ()),
    )
