"""What a job's page shows beside its live figures: the events worth telling, and where its money went."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q, Sum

from webapp.jobs.models import Event, EventKind
from webapp.money.models import Account, ChargeKind, ChargeState

EVENTS_SHOWN = 100


def telling_events(job_id: str) -> list[dict[str, Any]]:
    """The last events that are not rounds, in order: rounds are many, and would push everything else off the list."""
    rows = Event.objects.filter(job_id=job_id).exclude(kind=EventKind.ROUND).order_by("-seq")[:EVENTS_SHOWN]
    return [
        {"seq": row.seq, "at": row.at.isoformat(), "kind": row.kind, "payload": row.payload}
        for row in reversed(rows)
    ]


def cost_by_kind(account: Account) -> list[dict[str, Any]]:
    """How many calls and slices of rent there were of each kind, and what they came to; empty kinds left out."""
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
    return [{"word": kind.label, **by_kind[kind]} for kind in ChargeKind if kind in by_kind]
