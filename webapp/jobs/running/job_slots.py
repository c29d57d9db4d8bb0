"""How many jobs the worker runs at once, and how many of those compute on this machine."""

from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet

from cloud.platforms.options import COMPUTE_HERE
from cloud.workers.executor import cores
from webapp.database.leases import idle
from webapp.formatting import plural
from webapp.job_states import Observed
from webapp.jobs.models import Desired, Job

_THREADS_LEFT_FOR_OTHERS = 4
"""Each watched job holds a thread of the worker; periodic tasks need some too."""


def places() -> int:
    """Return how many jobs run at once, on any platform."""
    return int(settings.CELERY_WORKER_CONCURRENCY) - _THREADS_LEFT_FOR_OTHERS


def core_places() -> int:
    """Return how many jobs compute on this machine at once: one a core, unless the operator sets a number."""
    return int(settings.STARLING_MAX_LOCAL_JOBS) or max(1, cores())


def needs_core(job: Job) -> bool:
    """Return whether the job computes on this machine and so needs a free core."""
    return job.cloud in COMPUTE_HERE


def on_cores() -> QuerySet[Job]:
    """Return the jobs that compute on this machine now, according to the database."""
    return Job.objects.filter(cloud__in=COMPUTE_HERE).exclude(lease_owner="")


def waiting_for_core(now: datetime) -> QuerySet[Job]:
    """Return the jobs that wait for a core of this machine, next one first.

    `now` is by the database's clock, as leases are.
    """
    waiting = Job.objects.filter(
        idle(now),
        cloud__in=COMPUTE_HERE,
        desired=Desired.RUN,
        observed__in=(Observed.QUEUED, Observed.RECOVERING),
    )
    return waiting.order_by("since", "pk")


def core_sentence(in_use: int, ahead: int = 0) -> str:
    """Return why a job waits for a core: "Waits for a free core: 2 of 2 are in use."."""
    most = core_places()
    used = f"Waits for a free core: {min(in_use, most):,} of {most:,} {'is' if most == 1 else 'are'} in use"
    if not ahead:
        return f"{used}."
    return f"{used}, and {plural(ahead, 'job is', 'jobs are')} ahead of this one."
