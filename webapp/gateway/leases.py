"""Expired leases: both sides of a mailbox sweep them before they read it."""

from __future__ import annotations

from django.db.models import Q

from webapp.gateway.models import CallState, PulledCall


def due(now_unix_s: float) -> Q:
    """A filter for calls whose lease, or whose time to begin, has run out."""
    lost = Q(state=CallState.LEASED, lease_until_unix_s__lte=now_unix_s)
    return lost | Q(state=CallState.WAITING, begin_by_unix_s__lt=now_unix_s)


def sweep(job_id: str, now_unix_s: float) -> None:
    """Take back calls whose puller was lost. End calls that have no time or starts left.

    Each change is one conditional UPDATE: a concurrent answer wins or loses as a whole.
    """
    for call in PulledCall.objects.filter(due(now_unix_s), box_id=job_id):
        if call.begin_by_unix_s < now_unix_s or len(call.began) >= call.most_starts:
            state = CallState.USED_UP
        else:
            state = CallState.WAITING
        unchanged = PulledCall.objects.filter(due(now_unix_s), pk=call.pk, puller=call.puller)
        unchanged.update(state=state, puller="")
