"""The columns of tables and of calls, once for every kind of file."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from webapp.reports.calls import SettledCall
from webapp.reports.report_query import PRICES, Question
from webapp.reports.table import Amounts, Costs, ReportRow, ReportTable

Kind = Literal["text", "money", "count"]

BASES = {
    "estimated": "The cost of a call is unknown: all that was reserved for it counts.",
    "metered": "Measured call by call as it ran, at list prices.",
    "billed": "What the cloud charges, by its own bill of that day and service.",
}
"""How certain an amount is, the least certain first."""


class BillColumn(NamedTuple):
    name: str
    kind: Kind = "text"


AMOUNTS = (
    BillColumn("cost [USD]", "money"),
    BillColumn("estimated [USD]", "money"),
    BillColumn("metered [USD]", "money"),
    BillColumn("billed [USD]", "money"),
)
"""The cost, and its parts by how certain they are."""

CALL_COLUMNS = (
    *map(BillColumn, ("settled [UTC]", "project", "job", "job id", "user", "cloud", "region", "tags")),
    *(BillColumn("round", "count"), BillColumn("epoch", "count"), BillColumn("call"), BillColumn("kind")),
    *(BillColumn("cost [USD]", "money"), BillColumn("basis"), BillColumn("prices")),
)
COST_OF_CALL = 12
METERED_WHERE_BILLED = BillColumn("metered where billed [USD]", "money")
"""What Starling metered of the billed amounts; only if there is a bill."""


def call_columns(costs: Costs) -> list[BillColumn]:
    return [*CALL_COLUMNS, METERED_WHERE_BILLED] if costs.has_bill else list(CALL_COLUMNS)


def table_columns(table: ReportTable) -> list[BillColumn]:
    columns = [BillColumn(table.title.lower())]
    if table.by in ("job", "service"):
        columns.append(BillColumn("job id" if table.by == "job" else "provider"))
    if table.has_calls:
        columns.append(BillColumn("calls", "count"))
    columns += AMOUNTS
    if table.has_bill:
        columns.append(METERED_WHERE_BILLED)
    return [*columns, BillColumn("basis"), BillColumn("prices")]


def table_cells(table: ReportTable, row: ReportRow, question: Question) -> list[Any]:
    """A row's cells; money as whole picodollars."""
    amounts: Amounts = row.amounts
    cells: list[Any] = [row.label]
    if table.by in ("job", "service"):
        cells.append(row.detail)
    if table.has_calls:
        cells.append(row.calls)
    cells += [amounts.cost, amounts.estimated, amounts.metered, amounts.billed]
    if table.has_bill:
        cells.append(row.metered)
    return [*cells, amounts.basis, question.prices]


def call_cells(call: SettledCall) -> tuple[Any, ...]:
    """A call's cells; money as whole picodollars. The last is that of METERED_WHERE_BILLED."""
    facts = call.facts
    return (
        *(call.at, facts.project, facts.name, facts.id, facts.user, facts.cloud, facts.region),
        *("; ".join(facts.tags), call.round_no, call.epoch, call.name, call.kind),
        *(call.picodollars, call.basis, facts.prices, call.metered),
    )


def heading(question: Question, whose: str) -> str:
    return f"Cost of {whose}, {question.period}"


def prices_sentence(question: Question) -> str:
    return PRICES[question.prices]
