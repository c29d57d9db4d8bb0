"""The lease of a job, which its process holds (`webapp.database.leases`)."""

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database import leases
from webapp.job_states import ACTIVE
from webapp.jobs.models import Desired, Job


def take_lease(*, job_id: str, owner: str, clock: Clock = SYSTEM_CLOCK) -> int | None:
    """Return the new epoch; None if the job must not run, or another process runs it already."""
    wanted = Job.objects.filter(observed__in=ACTIVE, desired=Desired.RUN)
    return leases.take(wanted, job_id, owner, clock=clock)


def renew_lease(*, job_id: str, epoch: int, clock: Clock = SYSTEM_CLOCK) -> bool:
    return leases.renew(Job, job_id, epoch, clock=clock)
