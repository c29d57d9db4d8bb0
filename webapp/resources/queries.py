"""What pages read about running resources: of a project, of a job, and what a job costs if this server dies now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Sum

from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import total
from cloud.money.unattended_cost import (
    BillingResource,
    ReservedCalls,
    UnattendedCost,
    deadline_s,
    unattended_cost,
)
from webapp.accounts.models import Project
from webapp.connections.models import Connection
from webapp.job_states import ACTIVE
from webapp.jobs.models import Job
from webapp.money.models import RENT, Basis, ChargeState
from webapp.resources import late_rent
from webapp.resources.models import LIVE, Holding, HoldingKind, Look
from webapp.resources.scanner import scanned_connections

ACTION_WORDS: dict[str, str] = {
    "leave": "left",
    "wait": "looked at again",
    "stands": "there",
    "end": "to be ended",
    "gone": "gone",
    "lost": "lost",
}
_HOUR_NS = 3600 * 10**9


@dataclass(frozen=True)
class RunningResources:
    """The resources that run in some accounts as of `checked_at`.

    `checked_at` is the oldest of the accounts' last scans; None if an account was never scanned. `problems` name the
    accounts that could not be scanned, and why.
    """

    things: Sequence[Holding]
    accounts: int
    checked_at: datetime | None
    problems: Sequence[str]

    @property
    def clear(self) -> bool:
        return not self.things and not self.problems and self.checked_at is not None


def in_project(project: Project) -> RunningResources:
    """The resources in all scanned accounts of the project."""
    return _running([one for one in scanned_connections() if one.project_id == project.pk])


def of_job(job: Job) -> RunningResources | None:
    """The job's resources in its account; None if it runs without an account."""
    name = job.spec["platform"].get("connection")
    connection = Connection.objects.filter(project_id=job.project_id, pk=name).first() if name else None
    if connection is None:
        return None
    return _running([connection], job=job)


def _running(accounts: Sequence[Connection], **of: Any) -> RunningResources:
    things = Holding.objects.filter(connection__in=accounts, state__in=LIVE, **of)
    looks = {look.connection_id: look for look in Look.objects.filter(connection__in=accounts)}
    moments = [looks[account.pk].at if account.pk in looks else None for account in accounts]
    problems = [
        f"{account.name}: {looks[account.pk].sentence}"
        for account in accounts
        if account.pk in looks and looks[account.pk].sentence
    ]
    known = [moment for moment in moments if moment is not None]
    return RunningResources(
        list(things.select_related("job").order_by("pk")),
        len(accounts),
        min(known) if known and len(known) == len(moments) else None,
        problems,
    )


def find_unattended_cost(job: Job, now: datetime) -> UnattendedCost | None:
    """What the job still costs if this server dies now; None for a job that is not active."""
    if job.observed not in ACTIVE:
        return None
    things = [
        _billing_resource(holding)
        for holding in Holding.objects.filter(job=job, state__in=LIVE).select_related("job")
    ]
    rent = job.account.charges.filter(state=ChargeState.OPEN, kind=RENT)
    reserved = rent.aggregate(sum=Sum("reserved_picodollars", default=0))["sum"]
    return unattended_cost(now.timestamp(), _in_flight(job), reserved, things)


def _in_flight(job: Job) -> list[ReservedCalls]:
    """Open calls that run outside this server, grouped by their reservation."""
    spec = job.parsed_spec()
    options, memory_mb = spec.platform, spec.training.memory_mb
    price = options.tariff(PriceBook.load(), memory_mb).actor
    if spec.simulated or price is None:
        return []
    # Calls of this server's own learner cost nothing.
    alike = (
        job.account.charges.filter(state=ChargeState.OPEN, reserved_picodollars__gt=0)
        .exclude(kind=RENT)
        .values("reserved_picodollars")
        .annotate(count=Count("pk"), last=Max("opened_at"))
    )
    return [
        ReservedCalls(
            row["count"],
            row["last"].timestamp(),
            (options.longest_start_s or 0.0) + deadline_s(price, memory_mb, row["reserved_picodollars"]),
            row["reserved_picodollars"],
        )
        for row in alike
    ]


def _billing_resource(thing: Holding) -> BillingResource:
    rent, unpaid_ns = late_rent.owed(thing, thing.expires_at)
    if thing.kind == HoldingKind.CONTAINER_GROUP:
        until_then = total(rent.lines(unpaid_ns)) if rent is not None else 0
        return BillingResource(thing.expires_at.timestamp(), until_then)
    instances = int(thing.facts.get("instances", 1))
    return BillingResource(None, total(rent.lines(_HOUR_NS)) if rent is not None else 0, instances)


def assumed_in(job: Job) -> tuple[int, int]:
    """How many calls of the job are booked by assumption, and their sum."""
    rows = job.account.charges.filter(state=ChargeState.SETTLED, basis=Basis.ASSUMED)
    sums = rows.aggregate(count=Count("pk"), sum=Sum("settled_picodollars", default=0))
    return sums["count"], sums["sum"]
