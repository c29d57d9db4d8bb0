"""What Starling metered beside what clouds bill: by day and service, as text, as a warning, and as an alert."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import Count, Max, Min, Sum

from webapp.alerts.models import About, AlertKind, Severity
from webapp.alerts.services import raise_alert, resolve_alert
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd
from webapp.reports.cost_query import CostPart
from webapp.reports.models import BilledLine, CloudBill, MatchedBy
from webapp.reports.report_query import MOST_DAYS, DayRange, Question
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
    ours: dict[tuple[date, str], int] = defaultdict(int)
    for part in costs.parts:
        service = billed_service(part.sku or "", part.facts.provider)
        metered = part.picodollars if part.metered is None else part.metered
        if service.provider != LOCAL and metered:
            ours[part.day, service.name] += metered
    return dict(ours)


_FAR = 10
"""A difference of more than a tenth of the billed amount is reported."""
_SMALL = 100
"""A difference of less than a hundredth of the whole bill is not reported."""


@dataclass(frozen=True)
class BillDifference:
    """What Starling metered of a service, and what its cloud bills for it."""

    service: str
    metered: int
    billed: int

    @property
    def is_far(self) -> bool:
        return abs(self.metered - self.billed) * _FAR > abs(self.billed)

    @property
    def words(self) -> str:
        off = format_difference(self.metered, self.billed)
        return (
            f"{self.service} is billed at {display_usd(self.billed)},"
            f" and we metered {display_usd(self.metered)} ({off})"
        )


def format_difference(ours: int, theirs: int) -> str:
    """How much too high (+) or too low (−) our figure is."""
    off = ours - theirs
    sign = "+" if off > 0 else "−" if off < 0 else "±"
    percent = f", {sign}{abs(100 * off / theirs):.1f} %" if theirs else ""
    return f"{sign}{display_usd(abs(off))}{percent}"


def far_off(parts: Iterable[CostPart]) -> list[BillDifference]:
    """The services whose metered amount differs from the bill by over a tenth, the largest difference first."""
    metered: dict[str, int] = {}
    billed: dict[str, int] = {}
    for part in parts:
        if part.metered is not None and part.service is not None:
            name = part.service.name
            metered[name] = metered.get(name, 0) + part.metered
            billed[name] = billed.get(name, 0) + part.picodollars
    whole = abs(sum(billed.values()))
    differences = [BillDifference(name, metered[name], billed[name]) for name in billed]
    large = [one for one in differences if abs(one.metered - one.billed) * _SMALL > whole]
    far = [difference for difference in large if difference.is_far]
    return sorted(far, key=lambda difference: -abs(difference.metered - difference.billed))


def difference_warning(far: list[BillDifference]) -> str:
    """A warning about these differences; empty if there are none."""
    if not far:
        return ""
    services = "; ".join(difference.words for difference in far)
    return (
        f"What we metered differs from the clouds' bills by more than 10 %. {services}. Reports use the bill."
    )


def metered_sentence(costs: Costs) -> str:
    """How much of the costs is billed and what was metered of that; empty without a bill."""
    row = costs.table("cloud").total
    if row.metered is None:
        return ""
    off = format_difference(row.metered, row.amounts.billed)
    return f"Clouds bill {display_usd(row.amounts.billed)}; of that we metered {display_usd(row.metered)} ({off})."


def report_if_far(bill: CloudBill, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise an alert if this bill is far from what was metered on its days; resolve it if a later bill is near."""
    periods = bill.periods.aggregate(first=Min("first_day"), last=Max("first_day"))
    days = BilledLine.objects.filter(period__bill=bill).aggregate(first=Min("day"), last=Max("day"))
    if days["first"] is None:
        return
    first = max(days["first"], days["last"] - timedelta(days=MOST_DAYS - 1))
    question = Question(project=bill.project_id, first_day=first, last_day=days["last"])
    words = difference_warning(far_off(Costs(question, with_services=True).parts))
    key = f"bill-{periods['first']}-{periods['last']}"
    if not words:
        resolve_alert(
            project_id=bill.project_id,
            dedupe_key=key,
            words="A later bill is near what we metered.",
            clock=clock,
        )
        return
    raise_alert(
        project_id=bill.project_id,
        kind=AlertKind.BILL,
        subject=About.BILL.subject(bill.pk),
        sentence=f"{DayRange(first, days['last'])}: {words}",
        severity=Severity.WARNING,
        dedupe_key=key,
        clock=clock,
    )
