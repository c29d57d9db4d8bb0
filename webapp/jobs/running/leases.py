"""Who runs a job: at most one holder at a time, each with an epoch of its own that only grows.

Every change is one conditional UPDATE, so two who try at once cannot both succeed. All moments are the database's
(`Clock.shared_now`): a machine whose clock is wrong neither takes nor loses a lease by that.

A lease outlives a minute in which its holder gets no time on a busy machine. A holder whose process is known to have
died loses it at once (`holders`), so nothing waits for that minute after a crash.
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
    """Jobs whose lease nobody holds (any more)."""
    return Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=now)


def is_idle(job: Job, now: datetime) -> bool:
    return job.lease_expires_at is None or job.lease_expires_at <= now


@transaction.atomic
def take_lease(*, job_id: str, owner: str, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """The epoch to write under; None if the job is not to be run, or somebody runs it already."""
    now = clock.shared_now()
    free = Job.objects.filter(idle(now), pk=job_id, observed__in=ACTIVE, desired=Desired.RUN)
    taken = free.update(lease_owner=owner, lease_epoch=F("lease_epoch") + 1, lease_expires_at=now + LEASE_TTL)
    return Job.objects.values_list("lease_epoch", flat=True).get(pk=job_id) if taken else None


def renew_lease(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Keep the lease for another TTL; False if it is no longer ours.

    One that ran out and that no one has taken since is ours still.
    """
    return bool(_held(job_id, epoch).update(lease_expires_at=clock.shared_now() + LEASE_TTL))


def release_lease(*, job_id: str, epoch: int) -> bool:
    """Give the lease back. The epoch stays used: writes under it are refused from now on."""
    return bool(_held(job_id, epoch).update(lease_owner="", lease_expires_at=None))


def _held(job_id: str, epoch: int) -> Any:
    return Job.objects.filter(pk=job_id, lease_epoch=epoch).exclude(lease_owner="")
