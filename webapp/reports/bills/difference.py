"""How far what Starling metered is from what clouds bill: as text, as a warning, and as an alert."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Max, Min

from webapp.alerts.models import About, Kind, Severity
from webapp.alerts.services import raise_alert, resolve_alert
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd
from webapp.reports.cost_query import Part
from webapp.reports.models import BilledLine, CloudBill
from webapp.reports.period import MOST_DAYS, Period
from webapp.reports.report_query import Question
from webapp.reports.table import Costs

_FAR = 10
"""A difference of more than a tenth of the billed amount is reported."""
_SMALL = 100
"""A difference of less than a hundredth of the whole bill is not reported."""


@dataclass(frozen=True)
class Difference:
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


def far_off(parts: Iterable[Part]) -> list[Difference]:
    """The services whose metered amount differs from the bill by over a tenth, the largest difference first."""
    metered: dict[str, int] = {}
    billed: dict[str, int] = {}
    for part in parts:
        if part.metered is not None and part.service is not None:
            name = part.service.name
            metered[name] = metered.get(name, 0) + part.metered
            billed[name] = billed.get(name, 0) + part.picodollars
    whole = abs(sum(billed.values()))
    found = [Difference(name, metered[name], billed[name]) for name in billed]
    large = [one for one in found if abs(one.metered - one.billed) * _SMALL > whole]
    far = [one for one in large if one.is_far]
    return sorted(far, key=lambda one: -abs(one.metered - one.billed))


def difference_warning(far: list[Difference]) -> str:
    """A warning about these differences; empty if there are none."""
    if not far:
        return ""
    services = "; ".join(one.words for one in far)
    return f"What we metered is more than a tenth off the clouds' bills. {services}. The bill counts."


def metered_sentence(costs: Costs) -> str:
    """How much of the costs is billed and what was metered of that; empty without a bill."""
    row = costs.table("cloud").total
    if row.metered is None:
        return ""
    off = format_difference(row.metered, row.amounts.billed)
    return f"Clouds bill {display_usd(row.amounts.billed)}; of that we metered {display_usd(row.metered)} ({off})."


def report_if_far(bill: CloudBill, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise an alert if this bill is far from what was metered on its days; resolve it if a later bill is near."""
    days = BilledLine.objects.filter(bill=bill).aggregate(first=Min("day"), last=Max("day"))
    if days["first"] is None:
        return
    first = max(days["first"], days["last"] - timedelta(days=MOST_DAYS - 1))
    question = Question(project=bill.project_id, first_day=first, last_day=days["last"])
    words = difference_warning(far_off(Costs(question, with_services=True).parts))
    key = f"bill-{first}-{days['last']}"
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
        kind=Kind.BILL,
        subject=About.BILL.subject(bill.pk),
        sentence=f"{Period(first, days['last'])}: {words}",
        severity=Severity.WARNING,
        dedupe_key=key,
        clock=clock,
    )
