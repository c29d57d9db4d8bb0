"""Who runs a scheduler's training: one holder at a time, each under an epoch that only grows, as with jobs."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.running.leases import LEASE_TTL, idle
from webapp.schedulers.models import SchedulerTraining, TrainingState

ACTIVE = (TrainingState.QUEUED, TrainingState.RUNNING)


class LeaseLost(Exception):
    """Somebody else runs this training now; nothing more may be written."""


def take(training_id: int, owner: str, *, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """The epoch to write under; None if it is not to be run, or somebody runs it."""
    now = clock.now()
    free = SchedulerTraining.objects.filter(idle(now), pk=training_id, state__in=ACTIVE)
    taken = free.update(
        lease_owner=owner,
        lease_epoch=F("lease_epoch") + 1,
        lease_expires_at=now + LEASE_TTL,
        state=TrainingState.RUNNING,
        since=now,
    )
    if not taken:
        return None
    return SchedulerTraining.objects.values_list("lease_epoch", flat=True).get(pk=training_id)


def renew(training_id: int, epoch: int, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    return bool(held(training_id, epoch).update(lease_expires_at=clock.now() + LEASE_TTL))


def held(training_id: int, epoch: int) -> Any:
    """The row, if it still is ours to write."""
    return SchedulerTraining.objects.filter(pk=training_id, lease_epoch=epoch).exclude(lease_owner="")
