"""A report as its page shows it: a chart over time and rows with shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webapp.formatting import bar_share, display_usd, format_axis_usd, format_day, format_percent
from webapp.money.amounts import exact_usd
from webapp.reports.bills.difference import format_difference
from webapp.reports.columns import BASES
from webapp.reports.table import Bar, Costs, ReportRow, ReportTable, bars_of

_MOST_BARS = 62
_MOST_ROWS = 200
_LABELS = 6


@dataclass(frozen=True)
class ChartBar:
    """A day, or several; all in percent of the picture."""

    x: str
    width: str
    y: str
    height: str
    days: str
    amount: str

    @property
    def words(self) -> str:
        return f"{self.days}: {self.amount}"


@dataclass(frozen=True)
class CostChart:
    bars: list[ChartBar]
    levels: list[tuple[str, str]]
    """Height in percent from the top, and the amount there."""
    days: list[tuple[str, str]]
    """Place in percent from the left, and the day there."""
    summary: str


@dataclass(frozen=True)
class PageRow:
    row: ReportRow
    exact: str
    share: str
    share_words: str
    difference: str


def chart(costs: Costs) -> CostChart:
    """Spend over time as a chart. Its summary is for screen readers."""
    drawn = bars_of(costs.by_day(), _MOST_BARS)
    slot = 100 / len(drawn.bars)
    bars = [
        ChartBar(
            x=f"{slot * at + slot * 0.12:.3f}%",
            width=f"{slot * 0.76:.3f}%",
            y=f"{100 - 100 * bar.picodollars / drawn.highest:.3f}%",
            height=f"{100 * bar.picodollars / drawn.highest:.3f}%",
            days=_days(bar),
            amount=display_usd(bar.picodollars),
        )
        for at, bar in enumerate(drawn.bars)
    ]
    levels = [(f"{100 - 100 * level / drawn.highest:.3f}%", format_axis_usd(level)) for level in drawn.levels]
    every = -(-len(bars) // _LABELS)
    days = [
        (f"{slot * (at + 0.5):.3f}%", format_day(drawn.bars[at].first, short=True))
        for at in range(0, len(bars), every)
    ]
    return CostChart(bars, levels if len(levels) > 1 else [], days, _summary(drawn.bars))


def _days(bar: Bar) -> str:
    day = f"{format_day(bar.first, short=True)} {bar.first.year}"
    return day if bar.first == bar.last else f"{day} to {format_day(bar.last, short=True)} {bar.last.year}"


def _summary(bars: list[Bar]) -> str:
    dearest = max(bars, key=lambda bar: bar.picodollars)
    if not dearest.picodollars:
        return "Nothing was spent in this time."
    total = display_usd(sum(bar.picodollars for bar in bars))
    amount = display_usd(dearest.picodollars)
    return f"Spend over time, {total} in all, most of it on {_days(dearest)}: {amount}."


def rows(table: ReportTable) -> list[PageRow]:
    """The first rows, with their shares of the total."""
    return [_page_row(row, table.total.cost) for row in table.rows[:_MOST_ROWS]]


def total(table: ReportTable) -> PageRow:
    return _page_row(table.total, table.total.cost)


def _page_row(row: ReportRow, whole: int) -> PageRow:
    difference = "" if row.metered is None else format_difference(row.metered, row.amounts.billed)
    return PageRow(
        row,
        exact_usd(row.cost),
        bar_share(row.cost, whole),
        format_percent(row.cost, whole, decimals=1),
        difference,
    )


def left_out(table: ReportTable) -> int:
    return max(0, len(table.rows) - _MOST_ROWS)


def certainty_parts(costs: Costs) -> list[dict[str, Any]]:
    """The parts of the total by how certain they are, with an explanation of each."""
    amounts = costs.table("cloud").total.amounts
    parts = [(name, getattr(amounts, name), words) for name, words in BASES.items()]
    return [{"word": word, "amount": amount, "words": words} for word, amount, words in parts if amount]
