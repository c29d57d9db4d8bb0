"""What a project's jobs cost this month, day by day, and the expected cost of the whole month.

Days are UTC days, as budgets and reports have them. Real money is never added to money that no one pays.
Where a cloud's bill was read, its amounts count, as in reports.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from statistics import fmean, pstdev

from django.core.cache import caches
from django.db.models import Case, CharField, Sum, Value, When

from cloud.timing.forecasting.result import TENTH
from webapp.accounts.models import Project
from webapp.formatting import (
    AxisTicks,
    axis_of,
    display_usd,
    format_axis_usd,
    format_day,
    percent_ticks,
    svg_points,
)
from webapp.money.models import Charge, ChargeState
from webapp.reports.bills.billed import has_bills
from webapp.reports.cells import UtcDay
from webapp.reports.report_query import Question
from webapp.reports.table import Costs

KEPT_S = 10
PACE_DAYS = 7
LEAST_DAYS = 3
"""With fewer days there is no forecast."""

WIDTH, HEIGHT = 640, 120


@dataclass(frozen=True)
class Month:
    """One kind of money: the amounts settled on each day up to today, in picodollars. `unreal`: its word, or ""."""

    today: date
    unreal: str
    by_day: tuple[int, ...]

    @property
    def spent_today(self) -> int:
        return self.by_day[-1]

    @property
    def spent(self) -> int:
        return sum(self.by_day)

    @property
    def days(self) -> int:
        return monthrange(self.today.year, self.today.month)[1]

    @property
    def last_day(self) -> date:
        return self.today.replace(day=self.days)

    def rows(self) -> list[tuple[date, int, int]]:
        """Day, what it cost, and all up to its end."""
        first = self.today.replace(day=1)
        sums = accumulate(self.by_day)
        return [(first + timedelta(days=at), self.by_day[at], total) for at, total in enumerate(sums)]

    def expected(self) -> tuple[int, int, int] | None:
        """Low, middle and high of the whole month at the pace of the last days: an 80 % interval. None if unknown."""
        whole = self.by_day[:-1][-PACE_DAYS:]
        left = self.days - len(self.by_day)
        if len(whole) < LEAST_DAYS or not left or not any(whole):
            return None
        middle = self.spent + fmean(whole) * left
        margin = TENTH * pstdev(whole) * left**0.5
        return round(max(self.spent, middle - margin)), round(middle), round(middle + margin)


def months(project: Project, now: datetime) -> list[Month]:
    """A month for each kind of money there is, real money first; at least one. A few seconds old at most."""
    key = f"overview-month:{project.pk}:{now:%Y-%m-%d}"
    listed: list[Month] | None = caches["process"].get_or_set(key, lambda: _months(project, now), KEPT_S)
    assert listed is not None  # `_months` never returns None
    return listed


def _months(project: Project, now: datetime) -> list[Month]:
    start = datetime(now.year, now.month, 1, tzinfo=UTC)
    rows = (
        Charge.objects.filter(
            state=ChargeState.SETTLED, resolved_at__gte=start, account__job__project=project
        )
        .annotate(day=UtcDay("resolved_at"), unreal=_UNREAL)
        .values_list("day", "unreal")
        .annotate(amount=Sum("settled_picodollars"))
        .order_by("unreal", "day")
    )
    amounts: dict[str, dict[int, int]] = {"": {}}
    for day, unreal, amount in rows:
        amounts.setdefault(unreal, {})[date.fromisoformat(day).day] = int(amount)
    today = now.astimezone(UTC).date()
    question = Question(project=project.pk, first_day=start.date(), last_day=today)
    if has_bills(question):
        amounts[""] = {day.day: amount for day, amount in Costs(question).by_day().items()}
    if len(amounts) > 1 and not sum(amounts[""].values()):
        del amounts[""]
    return [
        Month(today, unreal, tuple(days.get(day, 0) for day in range(1, today.day + 1)))
        for unreal, days in amounts.items()
    ]


_UNREAL = Case(
    When(account__job__simulated=True, then=Value("simulated")),
    When(account__job__emulated=True, then=Value("emulated")),
    default=Value(""),
    output_field=CharField(),
)


@dataclass(frozen=True)
class MonthDrawing:
    """The month as an SVG: `line` up to today, `band` and `middle` from there on, a budget's line at `limit_y`."""

    line: str
    band: str
    middle: str
    limit_y: float | None
    levels: AxisTicks = ()
    """Of the money axis."""


def drawing(month: Month, limit: int | None) -> MonthDrawing:
    """Drawn from zero, because it is money."""
    expected = month.expected()
    tops = [month.spent, expected[2] if expected else 0, limit or 0]
    top = max(tops) * 1.08 or 1

    def at(day: float, amount: float) -> tuple[float, float]:
        return WIDTH * day / month.days, HEIGHT * (1 - amount / top)

    sums: Sequence[int] = [0, *(total for _, _, total in month.rows())]
    line = svg_points(at(day, total) for day, total in enumerate(sums))
    here = at(len(month.by_day), month.spent)
    band = middle = ""
    if expected:
        low, most_likely, high = (at(month.days, amount) for amount in expected)
        band, middle = svg_points((here, high, low)), svg_points((here, most_likely))
    limit_y = None if limit is None else HEIGHT * (1 - limit / top)
    levels = percent_ticks(top, axis_of(0, top, 100, 0), format_axis_usd) if top > 1 else ()
    return MonthDrawing(line, band, middle, limit_y, levels)


def pace_sentence(month: Month) -> str:
    """The expected cost of the month at the pace of its last days; empty if too little is known."""
    expected = month.expected()
    if expected is None:
        return ""
    low, middle, high = (display_usd(amount) for amount in expected)
    return f"At the pace of the last days it comes to about {middle} by {format_day(month.last_day)} ({low}–{high})."


def month_in_words(month: Month, limit: int | None) -> str:
    """The drawing as text for screen readers."""
    words = (
        f"Spent this month, day by day: {display_usd(month.spent)} by {format_day(month.today)},"
        f" {display_usd(month.spent_today)} of it today."
    )
    if limit is not None:
        words += f" The budget's line is at {display_usd(limit)}."
    return f"{words} {pace_sentence(month)}".strip()
