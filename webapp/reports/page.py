"""A report as its page draws it: a chart over time, rows with shares, files to take away."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from webapp.formatting import bar_share, display_usd, format_axis_usd, format_day, format_percent
from webapp.money.amounts import exact_usd
from webapp.reports.bills.difference import difference_words
from webapp.reports.columns import BASES
from webapp.reports.table import Costs, Row, Table

_MOST_BARS = 62
_MOST_ROWS = 200
_LABELS = 6


@dataclass(frozen=True)
class Bar:
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
class Chart:
    bars: list[Bar]
    levels: list[tuple[str, str]]
    """Height in percent from the top, and the amount there."""
    days: list[tuple[str, str]]
    """Place in percent from the left, and the day there."""
    summary: str


@dataclass(frozen=True)
class ShownRow:
    row: Row
    exact: str
    share: str
    share_words: str
    difference: str


def chart(costs: Costs) -> Chart:
    """Spend over time. Its summary is what somebody hears who does not see it."""
    listed = list(costs.by_day().items())
    each = -(-len(listed) // _MOST_BARS)
    spans = [_span(listed[at : at + each]) for at in range(0, len(listed), each)]
    most = max((amount for *_, amount in spans), default=0)
    step = _step(most)
    highest = max(step * -(-most // step), 1)
    slot = 100 / len(spans)
    bars = [
        Bar(
            x=f"{slot * at + slot * 0.12:.3f}%",
            width=f"{slot * 0.76:.3f}%",
            y=f"{100 - 100 * amount / highest:.3f}%",
            height=f"{100 * amount / highest:.3f}%",
            days=_days(first, last),
            amount=display_usd(amount),
        )
        for at, (first, last, amount) in enumerate(spans)
    ]
    levels = [
        (f"{100 - 100 * level / highest:.3f}%", format_axis_usd(level))
        for level in range(0, highest + 1, step)
    ]
    every = -(-len(spans) // _LABELS)
    days = [
        (f"{slot * (at + 0.5):.3f}%", format_day(spans[at][0], short=True))
        for at in range(0, len(spans), every)
    ]
    return Chart(bars, levels if most else [], days, _summary(spans, most))


def _span(days: list[tuple[date, int]]) -> tuple[date, date, int]:
    return days[0][0], days[-1][0], sum(amount for _, amount in days)


def _days(first: date, last: date) -> str:
    one = f"{first.day} {first:%b %Y}"
    return one if first == last else f"{one} to {last.day} {last:%b %Y}"


def _summary(spans: list[tuple[date, date, int]], most: int) -> str:
    if not most:
        return "Nothing was spent in this time."
    first, last, amount = max(spans, key=lambda span: span[2])
    total = sum(span[2] for span in spans)
    return f"Spend over time, {display_usd(total)} in all, most of it on {_days(first, last)}: {display_usd(amount)}."


def _step(most: int) -> int:
    rough = max(1, most // 4)
    size = 10 ** (len(str(rough)) - 1)
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)


def rows(table: Table) -> list[ShownRow]:
    """Rows with their shares of the total; of very many the first."""
    return [_shown(row, table.total.cost) for row in table.rows[:_MOST_ROWS]]


def total(table: Table) -> ShownRow:
    return _shown(table.total, table.total.cost)


def _shown(row: Row, whole: int) -> ShownRow:
    difference = "" if row.metered is None else difference_words(row.metered, row.amounts.billed)
    return ShownRow(
        row,
        exact_usd(row.cost),
        bar_share(row.cost, whole),
        format_percent(row.cost, whole, decimals=1),
        difference,
    )


def left_out(table: Table) -> int:
    return max(0, len(table.rows) - _MOST_ROWS)


def known_words(costs: Costs) -> list[dict[str, Any]]:
    """What of the total is how well known, in words."""
    amounts = costs.table("cloud").total.amounts
    parts = [(name, getattr(amounts, name), words) for name, words in BASES.items()]
    return [{"word": word, "amount": amount, "words": words} for word, amount, words in parts if amount]
