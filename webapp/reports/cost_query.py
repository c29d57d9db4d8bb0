"""A question's money, read once: from a cloud's bill where there is one, and otherwise from the ledger.

A bill covers a service on a day. What Starling metered of it is kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from webapp.accounts.models import Project
from webapp.money.models import Basis
from webapp.reports.bills.billed import BilledCosts, BilledScope, bills_in
from webapp.reports.cells import CostEntry, cells
from webapp.reports.job_facts import JobFacts, facts_of, facts_of_no_job
from webapp.reports.report_query import Question
from webapp.reports.sold_services import SoldService, billed_service, service_named, service_of

Known = Literal["estimated", "metered", "billed"]


@dataclass(frozen=True)
class CostPart:
    """Some money of one job on one day. `metered`: what Starling metered of it, if a bill covers it.

    `service` and `sku` are None if price lines were not read.
    """

    day: date
    facts: JobFacts
    sku: str | None
    service: SoldService | None
    basis: Known
    picodollars: int
    calls: int
    metered: int | None = None


@dataclass(frozen=True)
class CostReading:
    """Jobs with costs by id, the costs, and the bills beside them."""

    facts: dict[str, JobFacts]
    parts: list[CostPart]
    billed: BilledCosts
    unmetered: list[CostPart]
    """The billed parts without any metered use: no call of any job explains them."""


def read(question: Question, *, by_sku: bool) -> CostReading:
    """Read the question's money. With a bill, price lines are always read."""
    bills = bills_in(question)
    # What a job pays of a bill depends on what was metered for other jobs that day.
    entries = cells(
        question.model_copy(update={"job": ""}) if bills else question, by_sku=by_sku or bool(bills)
    )
    named = {job_id for bill in bills.values() for job_id in bill.by_job if job_id is not None}
    facts = facts_of({cell.job_id for cell in entries} | named)
    billed = BilledCosts(
        bills, ((_scope(cell, facts), cell.job_id, cell.picodollars) for cell in entries if bills)
    )
    wanted = {job_id: job for job_id, job in facts.items() if job.passes(question)}
    unmetered = [
        part
        for part in _unmetered(billed, facts)
        if part.facts.passes(question) and _is_of(part, question.service)
    ]
    parts = [
        part
        for part in _parts(entries, facts, billed)
        if part.facts.id in wanted and _is_of(part, question.service)
    ]
    paid_for = {cell.job_id for cell in entries}
    return CostReading(
        {job_id: job for job_id, job in wanted.items() if job_id in paid_for},
        [*parts, *unmetered],
        billed,
        unmetered,
    )


def known_by(booked: str) -> Known:
    """How certain a charge is that no bill covers."""
    return "estimated" if booked == Basis.ASSUMED else "metered"


def _scope(cell: CostEntry, facts: dict[str, JobFacts]) -> BilledScope:
    job = facts[cell.job_id]
    return BilledScope(job.project_id, cell.day, billed_service(cell.sku or "", job.provider).name)


def _parts(entries: list[CostEntry], facts: dict[str, JobFacts], billed: BilledCosts) -> Iterator[CostPart]:
    sharings = billed.sharings()
    for cell in entries:
        job = facts[cell.job_id]
        charged = sharings.of(_scope(cell, facts), job.id, cell.picodollars) if billed else None
        if charged is not None:
            service = billed_service(cell.sku or "", job.provider)
            yield CostPart(
                cell.day, job, cell.sku, service, "billed", charged, cell.calls, metered=cell.picodollars
            )
            continue
        bought = None if cell.sku is None else service_of(cell.sku, job.provider)
        yield CostPart(cell.day, job, cell.sku, bought, known_by(cell.basis), cell.picodollars, cell.calls)


def _unmetered(billed: BilledCosts, facts: dict[str, JobFacts]) -> Iterator[CostPart]:
    unnamed = {cell.scope.project_id for cell in billed.unmetered if cell.job_id not in facts}
    projects = Project.objects.in_bulk(unnamed) if unnamed else {}
    for scope, provider, job_id, amount in billed.unmetered:
        job = facts.get(job_id or "") or facts_of_no_job(projects[scope.project_id], provider)
        service = service_named(scope.service, provider)
        yield CostPart(scope.day, job, "", service, "billed", amount, 0, metered=0)


def _is_of(part: CostPart, service: str) -> bool:
    return not service or (part.service is not None and part.service.name == service)
