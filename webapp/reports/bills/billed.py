"""What clouds charge in a question's time, by the bills that were read in. Nothing here writes.

A bill covers a service on a day. There its amount is the cost, and what we metered stands beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from django.db.models import QuerySet, Sum

from webapp.reports.bills.shares import Sharing, paid_by_job
from webapp.reports.models import BilledLine, MatchedBy
from webapp.reports.report_query import Question


class Scope(NamedTuple):
    """What a bill covers: a project's use of one service on one day."""

    project_id: int
    day: date
    service: str


@dataclass
class ServiceBill:
    """A service's lines of one day by job; None for those that name no job.

    `is_ours`: whether a line says that it is Starling's. Otherwise it is the account's whole use of the service.
    """

    provider: str
    by_job: dict[str | None, int]
    is_ours: bool


class Unmetered(NamedTuple):
    """An amount of a bill that nothing of ours stands against. `job_id` None: of no single job."""

    scope: Scope
    provider: str
    job_id: str | None
    picodollars: int


def bills_in(question: Question) -> dict[Scope, ServiceBill]:
    """The bills of the question's time, whatever its filters are: shares of a bill do not depend on them."""
    if question.prices != "actual":
        return {}  # only money that is paid is ever on a bill
    groups = _lines(question).values_list("project_id", "day", "service", "provider", "job_id", "matched_by")
    found: dict[Scope, ServiceBill] = {}
    for project_id, day, service, provider, job_id, matched, amount in (
        groups.annotate(amount=Sum("picodollars")).order_by("day", "service").iterator()
    ):
        bill = found.setdefault(Scope(project_id, day, service), ServiceBill(provider, {}, False))
        bill.by_job[job_id] = bill.by_job.get(job_id, 0) + int(amount)
        bill.is_ours = bill.is_ours or matched != MatchedBy.DAY
    return found


def has_bills(question: Question) -> bool:
    """Whether any bill of the question's time was read in."""
    return question.prices == "actual" and _lines(question).exists()


def _lines(question: Question) -> QuerySet[BilledLine]:
    lines = BilledLine.objects.filter(day__range=(question.first_day, question.last_day))
    lines = lines.exclude(matched_by=MatchedBy.NOTHING)
    return lines if question.project is None else lines.filter(project_id=question.project)


class Billed:
    """Bills beside what we metered: which job pays how much, and what nothing of ours stands against."""

    def __init__(
        self, bills: Mapping[Scope, ServiceBill], metered: Iterable[tuple[Scope, str, int]] = ()
    ) -> None:
        """`metered`: scope, job and picodollars, in any order and any pieces."""
        ours: dict[Scope, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for scope, job_id, amount in metered:
            ours[scope][job_id] += amount
        self._paid: dict[tuple[Scope, str], tuple[int, int]] = {}
        self.unmetered: list[Unmetered] = []
        for scope, bill in bills.items():
            weights = ours.get(scope, {})
            if not bill.is_ours and not any(weights.values()):
                continue  # somebody else's use of that account
            for payer, amount in paid_by_job(bill.by_job, weights).items():
                if payer is not None and weights.get(payer):
                    self._paid[scope, payer] = amount, weights[payer]
                else:
                    self.unmetered.append(Unmetered(scope, bill.provider, payer, amount))
        self.unmetered.sort(key=lambda one: (one.scope, one.job_id or ""))

    def __bool__(self) -> bool:
        return bool(self._paid or self.unmetered)

    def sharings(self) -> Sharings:
        """To be asked once for each thing that we metered."""
        return Sharings(self._paid)


class Sharings:
    """Each job's amounts, given out as the money that we metered goes by, once from its beginning to its end."""

    def __init__(self, paid: Mapping[tuple[Scope, str], tuple[int, int]]) -> None:
        self._paid = paid
        self._begun: dict[tuple[Scope, str], Sharing] = {}

    def of(self, scope: Scope, job_id: str, metered: int) -> int | None:
        """What the cloud charges for this; None where no bill covers it."""
        key = scope, job_id
        if key not in self._paid:
            return None
        if key not in self._begun:
            self._begun[key] = Sharing(*self._paid[key])
        return self._begun[key].of(metered)
