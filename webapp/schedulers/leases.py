"""Leases of schedulers' trainings: one holder at a time, each under an epoch that only grows, as with jobs."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.running.leases import LEASE_TTL, find_liveness, idle
from webapp.schedulers.models import SchedulerTraining, TrainingState

ACTIVE = (TrainingState.QUEUED, TrainingState.RUNNING)

GIVEN_BACK: dict[str, Any] = {"now": {}, "lease_owner": "", "lease_expires_at": None}
"""The columns of a row without a holder."""


class LeaseLost(Exception):
    """Another process runs this training now; nothing more may be written."""


def take(training_id: int, owner: str, *, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """Take the lease; returns the epoch to write under, or None if it is held or the training has ended."""
    now = clock.shared_now()
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
    return bool(held(training_id, epoch).update(lease_expires_at=clock.shared_now() + LEASE_TTL))


def held(training_id: int, epoch: int) -> Any:
    """A query for the row, empty if this epoch no longer holds the lease."""
    return SchedulerTraining.objects.filter(pk=training_id, lease_epoch=epoch).exclude(lease_owner="")


def hand_back(training_id: int, owner: str) -> bool:
    """Release the lease that `owner` holds, because its process is being stopped; False if it holds none."""
    mine = SchedulerTraining.objects.filter(pk=training_id, lease_owner=owner, state=TrainingState.RUNNING)
    return bool(mine.update(state=TrainingState.QUEUED, **GIVEN_BACK))


def free_leases_of_the_dead(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Expire the leases of workers that are known to be gone: their trainings died with them."""
    now = clock.shared_now()
    running = SchedulerTraining.objects.filter(lease_expires_at__gt=now).exclude(lease_owner="")
    for training_id, owner in running.values_list("pk", "lease_owner"):
        if find_liveness(owner) == "gone":
            SchedulerTraining.objects.filter(pk=training_id, lease_owner=owner).update(lease_expires_at=now)
