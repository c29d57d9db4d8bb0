"""Mailboxes, their tokens, and leases that expire. A run opens its box and closes it."""

from __future__ import annotations

import hashlib
import secrets

from django.db import transaction
from django.db.models import Q

from webapp import doorbell
from webapp.accounts.models import User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.gateway import queries
from webapp.connections.gateway.models import Box, BoxToken, CallState, HeldWeights, PulledCall, SeenPuller
from webapp.job_states import TERMINAL

OFFERS = "starling:offers:"
ANSWERS = "starling:answers:"


def offers_on_commit(job_id: str) -> None:
    """Tell the gateway after the commit that the job may have calls to hand out."""
    transaction.on_commit(lambda: doorbell.bell.ring(f"{OFFERS}{job_id}", 1), robust=True)


def answers_on_commit(job_id: str) -> None:
    """Tell the job's process after the commit that answers may have arrived."""
    transaction.on_commit(lambda: doorbell.bell.ring(f"{ANSWERS}{job_id}", 1), robust=True)


TOKENS_KEPT = 50
# A puller that arrives before the job's process waits this long for it.
_EARLY_S = 600.0


@transaction.atomic
def open_box(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> Box:
    """The job's box, emptied, for the run under this epoch. Its tokens stay valid: machines may wait for it."""
    box, _ = Box.objects.select_for_update().get_or_create(pk=job_id)
    box.epoch, box.closed = epoch, False
    box.stay_until_unix_s = clock.now().timestamp() + _EARLY_S
    box.save()
    _empty(job_id)
    return box


@transaction.atomic
def close_box(*, job_id: str, epoch: int | None = None) -> bool:
    """Close the box, so that every puller leaves, and empty it. With an epoch, only if the box is still that run's."""
    boxes = Box.objects.filter(pk=job_id, closed=False)
    if not (boxes if epoch is None else boxes.filter(epoch=epoch)).update(closed=True):
        return False
    _empty(job_id)
    offers_on_commit(job_id)
    return True


@transaction.atomic
def leave_box(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Empty the box, but let pullers that cost nothing wait for the job's next process, while the job continues."""
    mine = Box.objects.filter(pk=job_id, epoch=epoch, closed=False)
    if mine.update(stay_until_unix_s=clock.now().timestamp() + _EARLY_S):
        _empty(job_id)


def _empty(job_id: str) -> None:
    for table in (PulledCall, HeldWeights, SeenPuller):
        table.objects.filter(box_id=job_id).delete()


@transaction.atomic
def new_token(*, job_id: str, user: User | None = None, clock: Clock = SYSTEM_CLOCK) -> str:
    """A token that opens the job's box until it ends (`queries.valid_tokens`). Only its hash is kept."""
    Box.objects.get_or_create(pk=job_id, defaults={"stay_until_unix_s": clock.now().timestamp() + _EARLY_S})
    secret = secrets.token_urlsafe(32)
    row = BoxToken.objects.create(
        box_id=job_id,
        sha256=digest(secret),
        made_at=clock.now(),
        made_by_id=user.pk if user else None,
        access_epoch=user.access_epoch if user else 0,
    )
    old = BoxToken.objects.filter(box_id=job_id).order_by("-pk").values_list("pk", flat=True)[TOKENS_KEPT:]
    BoxToken.objects.filter(pk__in=list(old)).delete()
    return f"{row.pk}.{secret}"


def end_token(*, job_id: str, number: int) -> bool:
    """End a person's token of this job. Returns whether there was a valid one."""
    deleted, _ = BoxToken.objects.filter(pk__in=queries.tokens_of_people(job_id).filter(pk=number)).delete()
    return deleted > 0


def digest(secret: str) -> str:
    # A random secret of 256 bits needs no slow hash.
    return hashlib.sha256(secret.encode()).hexdigest()


def tidy() -> int:
    """Close boxes that dead runs left open, once the job is over, and delete their tokens; how many."""
    over = Box.objects.filter(job__observed__in=TERMINAL).exclude(closed=True, tokens__isnull=True).distinct()
    keys = list(over.values_list("pk", flat=True))
    for job_id in keys:
        close_box(job_id=job_id)
        BoxToken.objects.filter(box_id=job_id).delete()
    return len(keys)


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
