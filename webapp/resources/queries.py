"""What pages say of what stands: per project, per job, and what would become of a job if this server died now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Sum

from cloud.aws_lambda import LambdaOptions
from cloud.billing.price_book import PriceBook
from cloud.pricing import total
from cloud.unattended_cost import BillingResource, ReservedCalls, UnattendedCost, deadline_s, unattended_cost
from webapp.connections.models import Connection
from webapp.job_states import ACTIVE
from webapp.jobs.models import Job
from webapp.money.models import Basis, ChargeKind, ChargeState
from webapp.resources import late_rent
from webapp.resources.models import LIVE, Holding, HoldingKind, Look
from webapp.resources.scanner import watched

DEEDS: dict[str, str] = {
    "leave": "left",
    "wait": "looked at again",
    "stands": "there",
    "end": "to be ended",
    "gone": "gone",
    "lost": "lost",
}
_HOUR_NS = 3600 * 10**9
_ON_ACTORS = (ChargeKind.ROLLOUT, ChargeKind.EVALUATE)


@dataclass(frozen=True)
class Standing:
    """What stands in some accounts as far as we know, and since when we know it.

    `checked_at` is that of the account that was looked at longest ago; None if one was never. `problems` say which
    could not be looked at, and why.
    """

    things: Sequence[Holding]
    accounts: int
    checked_at: datetime | None
    problems: Sequence[str]

    @property
    def clear(self) -> bool:
        return not self.things and not self.problems and self.checked_at is not None


def in_project(project: Any) -> Standing:
    """All accounts of the project in which something of ours may stand."""
    return _standing([one for one in watched() if one.project_id == project.pk])


def of_job(job: Job) -> Standing | None:
    """Of what the job's own account holds for it; None for one that runs in nobody's account."""
    name = job.spec["platform"].get("connection")
    there = Connection.objects.filter(project_id=job.project_id, pk=name).first() if name else None
    if there is None:
        return None
    return _standing([there], job=job)


def _standing(accounts: Sequence[Connection], **of: Any) -> Standing:
    things = Holding.objects.filter(connection__in=accounts, state__in=LIVE, **of)
    looks = {one.connection_id: one for one in Look.objects.filter(connection__in=accounts)}
    moments = [looks[one.pk].at if one.pk in looks else None for one in accounts]
    problems = [
        f"{one.name}: {looks[one.pk].sentence}"
        for one in accounts
        if one.pk in looks and looks[one.pk].sentence
    ]
    known = [moment for moment in moments if moment is not None]
    return Standing(
        list(things.select_related("job").order_by("pk")),
        len(accounts),
        min(known) if known and len(known) == len(moments) else None,
        problems,
    )


def if_left_alone(job: Job, now: datetime) -> UnattendedCost | None:
    """What becomes of the job if this server dies now; None for one that does nothing at this moment."""
    if job.observed not in ACTIVE:
        return None
    things = [_stands(one) for one in Holding.objects.filter(job=job, state__in=LIVE).select_related("job")]
    rent = job.account.charges.filter(state=ChargeState.OPEN, kind=ChargeKind.RENT)
    reserved = rent.aggregate(sum=Sum("reserved_picodollars", default=0))["sum"]
    return unattended_cost(now.timestamp(), _in_flight(job), reserved, things)


def _in_flight(job: Job) -> list[ReservedCalls]:
    """Open calls that run elsewhere than on this server, those alike together."""
    spec = job.parsed_spec()
    options, memory_mb = spec.platform, spec.training.rollout.memory_mb
    if not isinstance(options, LambdaOptions):
        return []
    price = options.tariff(PriceBook.load(), memory_mb).actor
    assert price is not None
    alike = (
        job.account.charges.filter(state=ChargeState.OPEN, kind__in=_ON_ACTORS)
        .values("reserved_picodollars")
        .annotate(count=Count("pk"), last=Max("opened_at"))
    )
    return [
        ReservedCalls(
            row["count"],
            row["last"].timestamp(),
            options.start_cap_s + deadline_s(price, memory_mb, row["reserved_picodollars"]),
            row["reserved_picodollars"],
        )
        for row in alike
    ]


def _stands(thing: Holding) -> BillingResource:
    rent, unpaid_ns = late_rent.owed(thing, thing.expires_at)
    if thing.kind == HoldingKind.CONTAINER_GROUP:
        until_then = total(rent.lines(unpaid_ns)) if rent is not None else 0
        return BillingResource(thing.expires_at.timestamp(), until_then)
    instances = int(thing.facts.get("instances", 1))
    return BillingResource(None, total(rent.lines(_HOUR_NS)) if rent is not None else 0, instances)


def assumed_in(job: Job) -> tuple[int, int]:
    """How many calls of the job are booked by assumption, and for how much."""
    rows = job.account.charges.filter(state=ChargeState.SETTLED, basis=Basis.ASSUMED)
    sums = rows.aggregate(count=Count("pk"), sum=Sum("settled_picodollars", default=0))
    return sums["count"], sums["sum"]
