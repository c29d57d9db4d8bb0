"""How many jobs this installation's worker runs at once, and how many of those that compute on this machine."""

from datetime import datetime

from django.conf import settings
from django.db.models import Q, QuerySet

from cloud.platform_kinds import COMPUTE_HERE
from cloud.workers.executor import cores
from webapp.formatting import plural
from webapp.job_states import Observed
from webapp.jobs.models import Desired, Job

_THREADS_LEFT_FOR_OTHERS = 4
"""Each watched job holds a thread of the worker; looks after jobs need some too."""


def places() -> int:
    """How many jobs run at once, wherever they compute."""
    return int(settings.CELERY_WORKER_CONCURRENCY) - _THREADS_LEFT_FOR_OTHERS


def core_places() -> int:
    """How many of them may compute on this machine: one for each core, unless the operator says otherwise."""
    return int(settings.STARLING_MAX_LOCAL_JOBS) or max(1, cores())


def needs_core(job: Job) -> bool:
    """Whether the job computes on this machine, so that a core must be free for it."""
    return job.cloud in COMPUTE_HERE


def on_cores() -> QuerySet[Job]:
    """The jobs that compute on this machine now, as far as the database knows."""
    return Job.objects.filter(cloud__in=COMPUTE_HERE).exclude(lease_owner="")


def waiting_for_core(now: datetime) -> QuerySet[Job]:
    """The jobs that are to compute on this machine and that no one runs, in the order in which they get a core.

    `now` by the database's clock, as leases have it.
    """
    free = Q(lease_expires_at__isnull=True) | Q(lease_expires_at__lte=now)
    waiting = Job.objects.filter(
        free,
        cloud__in=COMPUTE_HERE,
        desired=Desired.RUN,
        observed__in=(Observed.QUEUED, Observed.RECOVERING),
    )
    return waiting.order_by("since", "pk")


def core_sentence(in_use: int, ahead: int = 0) -> str:
    """Why a job waits that is to compute here: "Waits for a free core: 2 of 2 are in use."."""
    most = core_places()
    used = f"Waits for a free core: {min(in_use, most):,} of {most:,} {'is' if most == 1 else 'are'} in use"
    if not ahead:
        return f"{used}."
    return f"{used}, and {plural(ahead, 'job is', 'jobs are')} ahead of this one."
