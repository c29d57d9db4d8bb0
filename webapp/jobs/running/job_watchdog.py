"""The regular check of all jobs: after lost messages and dead processes, each job continues from its row.

Two checks at once do no harm: each change applies only if the job's row has not changed.
"""

from datetime import datetime, timedelta

from django.db.models import F, Q

from cloud.platform_kinds import COMPUTE_HERE
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.doorbell import ask_to_launch
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.models import Desired, Job
from webapp.jobs.reasons import Reason, StateChange
from webapp.jobs.running.lease_holders import find_liveness
from webapp.jobs.running.leases import LEASE_TTL, idle
from webapp.jobs.running.pausing import pause_idle
from webapp.jobs.running.recovery import run_ended
from webapp.jobs.services import cancel_idle
from webapp.money.models import Charge, ChargeState
from webapp.money.services import settle_leftovers

ASK_AGAIN_AFTER = timedelta(seconds=4)
_JOBS_AT_ONCE = 100


def check_jobs(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Cancel, pause, restart and queue jobs that need it, and book what dead runs left open."""
    expire_dead_leases(clock=clock)
    now = clock.shared_now()
    for job in _to_cancel(now):
        cancel_idle(job.pk, clock=clock)
    for job in _to_pause(now):
        pause_idle(job.pk, clock=clock)
    deserted = _deserted(now)
    for job in deserted:
        run_ended(
            job_id=job.pk,
            epoch=job.lease_epoch,
            why=_why_lost(job),
            only_if_idle=True,
            clock=clock,
        )
    # Jobs that were just found without a run start in this check; those that must not run are skipped there.
    for job_id in dict.fromkeys([*(job.pk for job in deserted), *_waiting(now)]):
        if not ask_to_launch(job_id):
            break  # no broker: the next check tries again
    for job in _owing(now):
        settle_leftovers(job_id=job.pk, before_epoch=job.lease_epoch + (not job.lease_owner), clock=clock)


def expire_dead_leases(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Expire the leases of workers that are known to have ended: their jobs died with them."""
    now = clock.shared_now()
    held = Job.objects.filter(lease_expires_at__gt=now).exclude(lease_owner="")
    for job_id, owner in held.values_list("pk", "lease_owner"):
        if find_liveness(owner) == "gone":
            Job.objects.filter(pk=job_id, lease_owner=owner).update(lease_expires_at=now)


def _why_lost(job: Job) -> StateChange:
    """Return why a run stopped renewing its lease, as far as this machine knows."""
    life = find_liveness(job.lease_owner)
    if life == "gone":
        return Reason.WORKER_KILLED.change()
    reason = Reason.MACHINE_BUSY if life == "alive" else Reason.MACHINE_GONE
    return reason.change(seconds=LEASE_TTL.total_seconds())


def _to_cancel(now: datetime) -> list[Job]:
    wanted = Job.objects.filter(idle(now), desired=Desired.CANCELLED).exclude(observed__in=TERMINAL)
    return list(wanted[:_JOBS_AT_ONCE])


def _to_pause(now: datetime) -> list[Job]:
    wanted = Job.objects.filter(idle(now), desired=Desired.PAUSED, observed__in=ACTIVE)
    return list(wanted[:_JOBS_AT_ONCE])


def _deserted(now: datetime) -> list[Job]:
    at_work = Q(observed__in=ACTIVE - {Observed.QUEUED, Observed.RECOVERING})
    died_early = Q(observed=Observed.RECOVERING, lease_expires_at__isnull=False)
    return list(Job.objects.filter(idle(now), at_work | died_early)[:_JOBS_AT_ONCE])


def _waiting(now: datetime) -> list[str]:
    """Return the jobs that need a start. Jobs that wait for a core do not delay jobs that need none."""
    waiting = Job.objects.filter(
        idle(now),
        desired=Desired.RUN,
        observed__in=(Observed.QUEUED, Observed.RECOVERING),
        since__lte=now - ASK_AGAIN_AFTER,
    ).order_by("since", "pk")
    here = Q(cloud__in=COMPUTE_HERE)
    found = [*waiting.exclude(here)[:_JOBS_AT_ONCE], *waiting.filter(here)[:_JOBS_AT_ONCE]]
    return [job.pk for job in found]


def _owing(now: datetime) -> list[Job]:
    open_charges = Charge.objects.filter(state=ChargeState.OPEN)
    left = open_charges.filter(
        Q(epoch__lt=F("account__job__lease_epoch")) | Q(account__job__lease_owner="")
    ).values_list("account__job_id", flat=True)
    return list(Job.objects.filter(pk__in=left)[:_JOBS_AT_ONCE])
