"""How far what we metered is from what clouds bill: in words, as a warning on pages, and as one alert for a bill."""

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
"""A difference of more than a tenth of what is billed is told."""
_SMALL = 100
"""A service whose difference is less than a hundredth of all that is billed is not worth telling."""


@dataclass(frozen=True)
class Difference:
    """What we metered of a service, and what its cloud bills for that."""

    service: str
    metered: int
    billed: int

    @property
    def is_far(self) -> bool:
        return abs(self.metered - self.billed) * _FAR > abs(self.billed)

    @property
    def words(self) -> str:
        off = difference_words(self.metered, self.billed)
        return (
            f"{self.service} is billed at {display_usd(self.billed)},"
            f" and we metered {display_usd(self.metered)} ({off})"
        )


def difference_words(ours: int, theirs: int) -> str:
    """How much too high (+) or too low (−) our figure is."""
    off = ours - theirs
    sign = "+" if off > 0 else "−" if off < 0 else "±"
    percent = f", {sign}{abs(100 * off / theirs):.1f} %" if theirs else ""
    return f"{sign}{display_usd(abs(off))}{percent}"


def far_off(parts: Iterable[Part]) -> list[Difference]:
    """The services of which we metered over a tenth more or less than is billed, the largest difference first."""
    metered: dict[str, int] = {}
    billed: dict[str, int] = {}
    for part in parts:
        if part.metered is not None and part.service is not None:
            name = part.service.name
            metered[name] = metered.get(name, 0) + part.metered
            billed[name] = billed.get(name, 0) + part.picodollars
    whole = abs(sum(billed.values()))
    found = [Difference(name, metered[name], billed[name]) for name in billed]
    worth_telling = [one for one in found if abs(one.metered - one.billed) * _SMALL > whole]
    far = [one for one in worth_telling if one.is_far]
    return sorted(far, key=lambda one: -abs(one.metered - one.billed))


def warning_words(far: list[Difference]) -> str:
    """A warning about them; empty where there are none."""
    if not far:
        return ""
    services = "; ".join(one.words for one in far)
    return f"What we metered is more than a tenth off the clouds' bills. {services}. The bill counts."


def beside_words(costs: Costs) -> str:
    """What of the costs is billed, and what we metered of that; empty without a bill."""
    row = costs.table("cloud").total
    if row.metered is None:
        return ""
    off = difference_words(row.metered, row.amounts.billed)
    return f"Clouds bill {display_usd(row.amounts.billed)}; of that we metered {display_usd(row.metered)} ({off})."


def tell_if_far(bill: CloudBill, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise one alert where the days of this bill are far from what we metered; end it where a later bill is near."""
    days = BilledLine.objects.filter(bill=bill).aggregate(first=Min("day"), last=Max("day"))
    if days["first"] is None:
        return
    first = max(days["first"], days["last"] - timedelta(days=MOST_DAYS - 1))
    question = Question(project=bill.project_id, first_day=first, last_day=days["last"])
    words = warning_words(far_off(Costs(question, with_services=True).parts))
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
