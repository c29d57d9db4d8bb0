"""A job's cost by kind, and the amounts that every bar and sentence about it shows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum

from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.money.models import Account, ChargeState, charge_kinds


def cost_by_kind(account: Account) -> list[dict[str, Any]]:
    """Return the number and cost of calls and slices of rent, by kind; kinds without any are left out."""
    sums = (
        account.charges.exclude(state=ChargeState.RELEASED)
        .values("kind")
        .annotate(
            settled=Count("pk", filter=Q(state=ChargeState.SETTLED)),
            open=Count("pk", filter=Q(state=ChargeState.OPEN)),
            picodollars=Sum("settled_picodollars", default=0),
            reserved=Sum("reserved_picodollars", filter=Q(state=ChargeState.OPEN), default=0),
        )
    )
    by_kind = {row["kind"]: row for row in sums}
    return [{"word": word, **by_kind[kind]} for kind, word in charge_kinds() if kind in by_kind]


def suggested_limit(job: Job) -> Decimal:
    """Return twice the present budget, the usual choice when a job should continue."""
    return Decimal(exact_usd(job.account.limit_picodollars)) * 2


def spent_of(job: Job) -> dict[str, Any]:
    """Return the account's amounts for bars and sentences."""
    account = job.account
    spent = account.spent_picodollars + account.overrun_picodollars
    return {
        "spent": spent,
        "reserved": account.reserved_picodollars,
        "limit": account.limit_picodollars,
        "free": max(0, account.limit_picodollars - spent - account.reserved_picodollars),
    }
