"""The lease of a scheduler's training, which its process holds (`webapp.database.leases`)."""

from __future__ import annotations

from typing import Any

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database import leases
from webapp.schedulers.models import SchedulerTraining, TrainingState

ACTIVE = (TrainingState.QUEUED, TrainingState.RUNNING)

GIVEN_BACK: dict[str, Any] = {"now": {}, **leases.NOT_HELD}
"""The columns of a row without a holder."""


def take(training_id: int, owner: str, *, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """Return the epoch to write under; None if the lease is held or the training has ended."""
    active = SchedulerTraining.objects.filter(state__in=ACTIVE)
    changes = {"state": TrainingState.RUNNING, "since": clock.shared_now()}
    return leases.take(active, training_id, owner, clock=clock, **changes)


def held(training_id: int, epoch: int) -> Any:
    return leases.held(SchedulerTraining, training_id, epoch)


def hand_back(training_id: int, owner: str) -> bool:
    """Release the lease that `owner` holds, because its process is being stopped; False if it holds none."""
    mine = SchedulerTraining.objects.filter(pk=training_id, lease_owner=owner, state=TrainingState.RUNNING)
    return bool(mine.update(state=TrainingState.QUEUED, **GIVEN_BACK))
