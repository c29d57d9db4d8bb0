"""Ours beside theirs: what we metered and what a cloud's bill says, by day and service, with the error."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, Sum

from webapp.reports.models import BilledLine, MatchedBy
from webapp.reports.question import Question
from webapp.reports.sold_services import LOCAL, mainly, service_of
from webapp.reports.table import Costs


@dataclass(frozen=True)
class Compared:
    """One service on one day, or all of them together. `unmatched`: on the bill, and nothing of ours."""

    day: date | None
    service: str
    ours: int
    theirs: int | None
    unmatched: int
    unmatched_count: int

    @property
    def error(self) -> int | None:
        """How much too high our figure is."""
        return None if self.theirs is None else self.ours - self.theirs

    @property
    def error_percent(self) -> float | None:
        return 100 * self.error / self.theirs if self.error is not None and self.theirs else None


def compared(question: Question) -> tuple[list[Compared], Compared]:
    """By day and service, newest first, and the sum over what is on a bill."""
    ours = _ours(question)
    theirs: dict[tuple[date, str], int] = {}
    unmatched: dict[tuple[date, str], tuple[int, int]] = {}
    lines = BilledLine.objects.filter(day__range=(question.first_day, question.last_day))
    if question.project is not None:
        lines = lines.filter(project_id=question.project)
    groups = lines.values_list("day", "service", "matched_by").annotate(
        amount=Sum("picodollars"), count=Count("pk")
    )
    for day, service, matched, amount, count in groups.order_by():
        if matched == MatchedBy.NOTHING:
            unmatched[day, service] = (int(amount), count)
        else:
            theirs[day, service] = theirs.get((day, service), 0) + int(amount)
    rows = [
        Compared(*key, ours.get(key, 0), theirs.get(key), *unmatched.get(key, (0, 0)))
        for key in sorted({*ours, *theirs, *unmatched}, key=lambda key: (-key[0].toordinal(), key[1]))
    ]
    told = [row for row in rows if row.theirs is not None]
    total = Compared(
        None,
        "",
        sum(row.ours for row in told),
        sum(row.theirs or 0 for row in told) if told else None,
        sum(row.unmatched for row in rows),
        sum(row.unmatched_count for row in rows),
    )
    return rows, total


def _ours(question: Question) -> dict[tuple[date, str], int]:
    """What we metered of what some cloud bills; a machine of one's own is on nobody's bill."""
    costs = Costs(question, with_services=True)
    found: dict[tuple[date, str], int] = defaultdict(int)
    for cell in costs.cells:
        provider = costs.facts[cell.job_id].provider
        service = service_of(cell.sku, provider) if cell.sku else mainly(provider)
        if service.provider != LOCAL and cell.picodollars:
            found[cell.day, service.name] += cell.picodollars
    return dict(found)
