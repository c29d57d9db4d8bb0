"""What Starling metered beside what a cloud's bill says, by day and service, with the error."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, Sum

from webapp.reports.models import BilledLine, MatchedBy
from webapp.reports.report_query import Question
from webapp.reports.sold_services import LOCAL, billed_service
from webapp.reports.table import Costs


@dataclass(frozen=True)
class Compared:
    """One service on one day, or the sum. `unmatched`: on the bill without any metered use."""

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


def compare_bills(question: Question) -> tuple[list[Compared], Compared]:
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
        # Without a tag a line may be anyone's in the account: it is compared with our use of that service only.
        if matched == MatchedBy.NOTHING or (matched == MatchedBy.DAY and not ours.get((day, service))):
            before = unmatched.get((day, service), (0, 0))
            unmatched[day, service] = (before[0] + int(amount), before[1] + count)
        else:
            theirs[day, service] = theirs.get((day, service), 0) + int(amount)
    rows = [
        Compared(*key, ours.get(key, 0), theirs.get(key), *unmatched.get(key, (0, 0)))
        for key in sorted({*ours, *theirs, *unmatched}, key=lambda key: (-key[0].toordinal(), key[1]))
    ]
    billed = [row for row in rows if row.theirs is not None]
    total = Compared(
        None,
        "",
        sum(row.ours for row in billed),
        sum(row.theirs or 0 for row in billed) if billed else None,
        sum(row.unmatched for row in rows),
        sum(row.unmatched_count for row in rows),
    )
    return rows, total


def _ours(question: Question) -> dict[tuple[date, str], int]:
    """What Starling metered of services that a cloud bills; no bill covers a user's own machine."""
    costs = Costs(question, with_services=True)
    found: dict[tuple[date, str], int] = defaultdict(int)
    for part in costs.parts:
        service = billed_service(part.sku or "", part.facts.provider)
        metered = part.picodollars if part.metered is None else part.metered
        if service.provider != LOCAL and metered:
            found[part.day, service.name] += metered
    return dict(found)
