"""What clouds charge in a question's period, by the bills that were read. Nothing here writes.

A bill covers a service on a day. Its amount is the cost of that day, and what Starling metered is shown beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from django.db.models import QuerySet, Sum

from webapp.reports.models import BilledLine, MatchedBy
from webapp.reports.report_query import Question


class Sharing:
    """Divides an amount in proportion to weights, one after the other. The shares sum to the amount exactly."""

    def __init__(self, amount: int, whole: int) -> None:
        self._amount = amount
        self._whole = whole
        self._weights = self._given = 0

    def of(self, weight: int) -> int:
        """The share of the next weight; all weights must sum to the whole."""
        if not self._whole:
            return 0
        self._weights += weight
        up_to_here = self._amount * self._weights // self._whole
        share, self._given = up_to_here - self._given, up_to_here
        return share


def paid_by_job(billed: Mapping[str | None, int], metered: Mapping[str, int]) -> dict[str | None, int]:
    """What each job pays of a service's bill of one day. Lines that name no job (None) are shared.

    They go to the jobs without a line of their own, or to all jobs if each has one. Without any job they stay at None.
    """
    paid = dict(billed)
    if None not in paid:
        return paid
    unnamed = {job: amount for job, amount in metered.items() if amount and job not in billed}
    weights = unnamed or {job: amount for job, amount in metered.items() if amount}
    if not weights:
        return paid
    sharing = Sharing(paid.pop(None), sum(weights.values()))
    for job in sorted(weights):
        paid[job] = paid.get(job, 0) + sharing.of(weights[job])
    return paid


class BilledScope(NamedTuple):
    """What a bill covers: a project's use of one service on one day."""

    project_id: int
    day: date
    service: str


@dataclass
class ServiceBill:
    """A service's lines of one day by job; None for those that name no job.

    `is_ours`: some line is tagged as Starling's. Otherwise the lines are the account's whole use of the service.
    """

    provider: str
    by_job: dict[str | None, int]
    is_ours: bool


class Unmetered(NamedTuple):
    """An amount of a bill without any metered use. `job_id` None: of no single job."""

    scope: BilledScope
    provider: str
    job_id: str | None
    picodollars: int


def bills_in(question: Question) -> dict[BilledScope, ServiceBill]:
    """The bills of the question's period. Filters do not apply: shares of a bill do not depend on them."""
    if question.prices != "actual":
        return {}  # bills contain only money that is paid
    groups = _lines(question).values_list("project_id", "day", "service", "provider", "job_id", "matched_by")
    bills: dict[BilledScope, ServiceBill] = {}
    for project_id, day, service, provider, job_id, matched, amount in (
        groups.annotate(amount=Sum("picodollars")).order_by("day", "service").iterator()
    ):
        bill = bills.setdefault(BilledScope(project_id, day, service), ServiceBill(provider, {}, False))
        bill.by_job[job_id] = bill.by_job.get(job_id, 0) + int(amount)
        bill.is_ours = bill.is_ours or matched != MatchedBy.DAY
    return bills


def has_bills(question: Question) -> bool:
    """Whether any bill of the question's period was read."""
    return question.prices == "actual" and _lines(question).exists()


def _lines(question: Question) -> QuerySet[BilledLine]:
    lines = BilledLine.objects.filter(day__range=(question.first_day, question.last_day))
    lines = lines.exclude(matched_by=MatchedBy.NOTHING)
    return lines if question.project is None else lines.filter(project_id=question.project)


class BilledCosts:
    """Bills beside what Starling metered: how much each job pays, and amounts without any metered use."""

    def __init__(
        self, bills: Mapping[BilledScope, ServiceBill], metered: Iterable[tuple[BilledScope, str, int]] = ()
    ) -> None:
        """`metered`: scope, job and picodollars, in any order, several for a job if need be."""
        ours: dict[BilledScope, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for scope, job_id, amount in metered:
            ours[scope][job_id] += amount
        self._paid: dict[tuple[BilledScope, str], tuple[int, int]] = {}
        self.unmetered: list[Unmetered] = []
        for scope, bill in bills.items():
            weights = ours.get(scope, {})
            if not bill.is_ours and not any(weights.values()):
                continue  # use of the account by other programs
            for payer, amount in paid_by_job(bill.by_job, weights).items():
                if payer is not None and weights.get(payer):
                    self._paid[scope, payer] = amount, weights[payer]
                else:
                    self.unmetered.append(Unmetered(scope, bill.provider, payer, amount))
        self.unmetered.sort(key=lambda cell: (cell.scope, cell.job_id or ""))

    def __bool__(self) -> bool:
        return bool(self._paid or self.unmetered)

    def sharings(self) -> Sharings:
        """Shares to hand out, once for each metered amount."""
        return Sharings(self._paid)


class Sharings:
    """Hands out each job's billed amount over its metered amounts, in one pass from the first to the last."""

    def __init__(self, paid: Mapping[tuple[BilledScope, str], tuple[int, int]]) -> None:
        self._paid = paid
        self._begun: dict[tuple[BilledScope, str], Sharing] = {}

    def of(self, scope: BilledScope, job_id: str, metered: int) -> int | None:
        """What the cloud charges for a metered amount; None if no bill covers it."""
        key = scope, job_id
        if key not in self._paid:
            return None
        if key not in self._begun:
            self._begun[key] = Sharing(*self._paid[key])
        return self._begun[key].of(metered)
