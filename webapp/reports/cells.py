"""The one query of reports: settled money by time, job, basis and, if wanted, SKU.

All tables are sums of these cells, in whole picodollars, so all views of a period have the same total. A charge
belongs to the moment at which it was settled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import chain, repeat
from typing import Any

from django.db import connection
from django.db.models import CharField, Count, F, Func, Q, QuerySet, Sum

from training.calls import KINDS
from webapp.money.amounts import Prices
from webapp.money.models import RENT, Charge, ChargeState
from webapp.reports.report_query import DayRange, Question


@dataclass(frozen=True)
class CostEntry:
    """Some money. `sku` is None if lines were not read, and empty for money that no line explains."""

    day: date
    job_id: str
    basis: str
    sku: str | None
    picodollars: int
    calls: int


class UtcDay(Func):
    """The UTC day of a moment as the text 2026-01-31, computed by the database."""

    output_field = CharField()
    # Moments are stored in SQLite as text in UTC; Django's own truncation would call back for every row.
    on_sqlite = "substr(%(expressions)s, 1, 10)"
    on_postgresql = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD')"

    def as_sqlite(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, template=self.on_sqlite, **extra_context)

    def as_postgresql(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, template=self.on_postgresql, **extra_context)


class UtcHour(UtcDay):
    """The UTC hour as 2026-01-31T23."""

    on_sqlite = "replace(substr(%(expressions)s, 1, 13), ' ', 'T')"
    on_postgresql = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24')"""


class UtcSecond(UtcDay):
    """The moment to the second as 2026-01-31T23:59:59Z."""

    on_sqlite = "replace(substr(%(expressions)s, 1, 19), ' ', 'T') || 'Z'"
    on_postgresql = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""


def settled(question: Question) -> QuerySet[Charge]:
    """All charges of a question, before its filters on facts of jobs."""
    period = question.period
    charges = Charge.objects.filter(
        state=ChargeState.SETTLED, resolved_at__gte=period.start, resolved_at__lt=period.end
    ).filter(of_prices(question.prices, "account__job__"))
    if question.project is not None:
        charges = charges.filter(account__job__project_id=question.project)
    return charges.filter(account__job_id=question.job) if question.job else charges


def of_prices(prices: Prices, before: str = "") -> Q:
    """A filter for jobs whose money is of that kind."""
    unreal = {f"{before}simulated": prices == "simulated", f"{before}emulated": prices == "emulated"}
    return Q(**unreal)


def cells(question: Question, *, by_sku: bool) -> list[CostEntry]:
    """The question's money by day, job and basis; with `by_sku` also by what was bought."""
    whole = list(_by_charge(question))
    return list(_by_line(question, whole)) if by_sku else whole


def _is_call() -> Q:
    """Return a filter for calls. A learner that costs nothing runs on this server: it calls no cloud, so its calls are
    not counted.
    """
    of_learners = [kind.name for kind in KINDS.values() if kind.where == "learner"]
    return ~Q(kind=RENT) & ~Q(kind__in=of_learners, settled_picodollars=0)


def _by_charge(question: Question) -> Iterator[CostEntry]:
    rows = (
        settled(question)
        .annotate(day=UtcDay("resolved_at"))
        .values_list("day", "account__job_id", "basis")
        .annotate(amount=Sum("settled_picodollars"), calls=Count("pk", filter=_is_call()))
        .order_by("day", "account__job_id", "basis")
    )
    for day, job_id, basis, amount, calls in rows:
        yield CostEntry(date.fromisoformat(day), job_id, basis, None, int(amount), calls)


_LINES = {
    "sqlite": (
        "SELECT c.day, c.owner, c.basis, json_extract(l.value, '$.sku'),"
        " SUM(json_extract(l.value, '$.picodollars')) FROM ({inner}) c, json_each(c.lines) l"
        " GROUP BY 1, 2, 3, 4"
    ),
    "postgresql": (
        "SELECT c.day, c.owner, c.basis, l ->> 'sku', SUM((l ->> 'picodollars')::bigint)"
        " FROM ({inner}) c CROSS JOIN LATERAL jsonb_array_elements(c.lines) l GROUP BY 1, 2, 3, 4"
    ),
}
"""How each database splits a charge into its lines; Django has no expression for it."""


def _by_line(question: Question, whole: list[CostEntry]) -> Iterator[CostEntry]:
    """Each cell by SKU. Money that no line explains becomes a cell of its own, so the total stays the same."""
    charges = settled(question).annotate(day=UtcDay("resolved_at"), owner=F("account__job_id"))
    inner, parameters = charges.values("day", "owner", "basis", "lines").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_LINES[connection.vendor].format(inner=inner), parameters)
        rows = cursor.fetchall()
    parts: dict[tuple[date, str, str], dict[str, int]] = defaultdict(dict)
    for day, job_id, basis, sku, amount in rows:
        parts[date.fromisoformat(day), job_id, basis][sku] = int(amount)
    for cell in whole:
        bought = parts[cell.day, cell.job_id, cell.basis]
        rest = cell.picodollars - sum(bought.values())
        if rest or not bought:
            bought[""] = bought.get("", 0) + rest
        # A call has several lines: it is counted on one of them.
        for sku, calls in zip(sorted(bought), chain((cell.calls,), repeat(0)), strict=False):
            yield CostEntry(cell.day, cell.job_id, cell.basis, sku, bought[sku], calls)


def kinds_of_money(project_id: int | None, period: DayRange) -> list[Prices]:
    """The kinds of money in which charges were settled, real money first."""
    kinds: tuple[Prices, ...] = ("actual", "simulated", "emulated")
    listed = []
    for prices in kinds:
        question = Question(
            project=project_id, first_day=period.first_day, last_day=period.last_day, prices=prices
        )
        if settled(question).filter(settled_picodollars__gt=0).exists():
            listed.append(prices)
    return listed


def charge_count(question: Question) -> int:
    """How many charges a question has, to decide which files are built at once."""
    return settled(question).count()
