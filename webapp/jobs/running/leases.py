"""Job leases: at most one holder at a time, each with an epoch that only grows.

Every change is one conditional UPDATE, so of two concurrent attempts one succeeds. All times are the
database's (`Clock.shared_now`), so a machine with a wrong clock neither takes nor loses a lease. A lease
outlives a minute without CPU time on a busy machine. A holder whose process is known to have died loses it at
once (`holders`).
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import ACTIVE
from webapp.jobs.models import Desired, Job

LEASE_TTL = timedelta(seconds=90)
RENEW_EVERY = timedelta(seconds=3)


def idle(now: datetime) -> Q:
    """Return jobs without a valid lease."""
    return Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=now)


def is_idle(lease_expires_at: datetime | None, now: datetime) -> bool:
    return lease_expires_at is None or lease_expires_at <= now


@transaction.atomic
def take_lease(*, job_id: str, owner: str, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """Return the new epoch; None if the job must not run, or another process runs it already."""
    now = clock.shared_now()
    free = Job.objects.filter(idle(now), pk=job_id, observed__in=ACTIVE, desired=Desired.RUN)
    taken = free.update(lease_owner=owner, lease_epoch=F("lease_epoch") + 1, lease_expires_at=now + LEASE_TTL)
    return Job.objects.values_list("lease_epoch", flat=True).get(pk=job_id) if taken else None


def renew_lease(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Renew the lease; False if another process has it. An expired lease that no one has taken is renewed."""
    return bool(_held(job_id, epoch).update(lease_expires_at=clock.shared_now() + LEASE_TTL))


def release_lease(*, job_id: str, epoch: int) -> bool:
    """Release the lease. Its epoch stays used: later writes under it are refused."""
    return bool(_held(job_id, epoch).update(lease_owner="", lease_expires_at=None))


def _held(job_id: str, epoch: int) -> Any:
    return Job.objects.filter(pk=job_id, lease_epoch=epoch).exclude(lease_owner="")
