"""A report as JSON, streamed. Amounts are exact dollars as text, because many programs read JSON numbers as floats."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import Any

from webapp.money.amounts import exact_usd
from webapp.reports.calls import calls
from webapp.reports.columns import (
    COST_OF_CALL,
    BillColumn,
    call_cells,
    call_columns,
    table_cells,
    table_columns,
)
from webapp.reports.files.csv_file import LINES_AT_ONCE
from webapp.reports.table import Costs


def pieces(costs: Costs, on_progress: Callable[[int], None] = lambda rows: None) -> Iterator[str]:
    """{"report": the question, "rows": […], "total": …}"""
    question = costs.question
    report = {**question.model_dump(mode="json"), "currency": "USD", "time": "UTC"}
    yield f'{{"report": {json.dumps(report)},\n"rows": ['
    total = yield from _calls(costs, on_progress) if question.by == "call" else _table(costs)
    yield f'],\n"total": {json.dumps(total)}}}\n'


def _table(costs: Costs) -> Generator[str, None, dict[str, Any]]:
    table = costs.table()
    columns = table_columns(table)
    names = _names(columns)
    rows = [_document(names, columns, table_cells(table, row, costs.question)) for row in table.rows]
    yield ",".join("\n" + json.dumps(row) for row in rows)
    return _document(names, columns, table_cells(table, table.total, costs.question))


def _calls(costs: Costs, on_progress: Callable[[int], None]) -> Generator[str, None, dict[str, Any]]:
    columns = call_columns(costs)
    names = _names(columns)
    calls_left = calls(costs)
    total = done = 0
    while batch := list(islice(calls_left, LINES_AT_ONCE)):
        rows = [call_cells(call)[: len(columns)] for call in batch]
        total += sum(row[COST_OF_CALL] for row in rows)
        comma = "," if done else ""
        done += len(batch)
        yield comma + ",".join("\n" + json.dumps(_document(names, columns, row)) for row in rows)
        on_progress(done)
    return {"cost_usd": exact_usd(total), "prices": costs.question.prices}


def _names(columns: Sequence[BillColumn]) -> list[str]:
    """`cost [USD]` as cost_usd."""
    return [
        column.name.replace("'s", "").replace("[", "").replace("]", "").replace(" ", "_").lower()
        for column in columns
    ]


def _document(names: Sequence[str], columns: Sequence[BillColumn], cells: Sequence[Any]) -> dict[str, Any]:
    return {
        name: exact_usd(cell) if column.kind == "money" and cell is not None else cell
        for name, column, cell in zip(names, columns, cells, strict=True)
    }
