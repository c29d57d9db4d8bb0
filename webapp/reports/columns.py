"""The columns of tables and of calls, once for every kind of file."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from webapp.reports.calls import SettledCall
from webapp.reports.question import PRICES, Question
from webapp.reports.table import Amounts, Row, Table

Kind = Literal["text", "money", "count"]


class Column(NamedTuple):
    name: str
    kind: Kind = "text"


AMOUNTS = (
    Column("cost [USD]", "money"),
    Column("estimated [USD]", "money"),
    Column("metered [USD]", "money"),
    Column("billed [USD]", "money"),
)
"""The cost, and how well which part of it is known."""

CALL_COLUMNS = (
    *map(Column, ("settled [UTC]", "project", "job", "job id", "user", "cloud", "region", "tags")),
    *(Column("round", "count"), Column("epoch", "count"), Column("call"), Column("kind")),
    *(Column("cost [USD]", "money"), Column("basis"), Column("prices")),
)
COST_OF_CALL = 12


def table_columns(table: Table) -> list[Column]:
    columns = [Column(table.title.lower())]
    if table.by in ("job", "service"):
        columns.append(Column("job id" if table.by == "job" else "provider"))
    if table.has_calls:
        columns.append(Column("calls", "count"))
    columns += AMOUNTS
    if table.has_told:
        columns.append(Column("cloud's bill [USD]", "money"))
    return [*columns, Column("basis"), Column("prices")]


def table_cells(table: Table, row: Row, question: Question) -> list[Any]:
    """A row's cells; money as whole picodollars."""
    amounts: Amounts = row.amounts
    cells: list[Any] = [row.label]
    if table.by in ("job", "service"):
        cells.append(row.detail)
    if table.has_calls:
        cells.append(row.calls)
    cells += [amounts.cost, amounts.estimated, amounts.metered, amounts.billed]
    if table.has_told:
        cells.append(row.told)
    return [*cells, amounts.basis, question.prices]


def call_cells(call: SettledCall) -> tuple[Any, ...]:
    """A call's cells; money as whole picodollars."""
    facts = call.facts
    return (
        *(call.at, facts.project, facts.name, facts.id, facts.user, facts.cloud, facts.region),
        *("; ".join(facts.tags), call.round_no, call.epoch, call.name, call.kind),
        *(call.picodollars, call.basis, facts.prices),
    )


def heading(question: Question, whose: str) -> str:
    return f"Cost of {whose}, {question.period}"


def money_words(question: Question) -> str:
    return PRICES[question.prices]
