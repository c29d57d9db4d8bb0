"""Pausing a job: it saves a checkpoint, costs nothing more, and resumes from there when a user lets it
(`go_on`)."""

from typing import Any

from django.db import transaction

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.events.event_log import append_events, note, transition
from webapp.jobs.models import Desired, Job
from webapp.jobs.reasons import Reason
from webapp.jobs.running.leases import is_idle
from webapp.money.services import close_books


class CannotPause(ValueError):
    """The job has ended or is being stopped. The text says which."""


@transaction.atomic
def pause_job(*, job: Job, user: Any, clock: Clock = SYSTEM_CLOCK) -> Job:
    """Request a pause. A running job saves a checkpoint first; one without a process is paused at once.

    Does nothing to a paused job. CannotPause if it has ended or is being stopped.
    """
    job = Job.objects.select_for_update().get(pk=job.pk)
    if job.observed == Observed.PAUSED or job.desired == Desired.PAUSED:
        return job
    if job.observed not in ACTIVE or job.desired == Desired.CANCELLED:
        state = "being stopped" if job.observed in ACTIVE else f"over ({job.get_observed_display().lower()})"
        raise CannotPause(f"The job is {state}; only one that goes on can be paused.")
    entry = note(f"Pause requested by {user}.")
    append_events(job.pk, [entry], clock=clock, changes={"desired": Desired.PAUSED})
    pause_idle(job.pk, clock=clock)
    job.refresh_from_db()
    return job


@transaction.atomic
def pause_idle(job_id: str, *, clock: Clock) -> bool:
    """Pause a job without a process, and book its open charges. False if it runs or no pause was requested."""
    job = Job.objects.select_for_update().get(pk=job_id)
    if (
        job.desired != Desired.PAUSED
        or job.observed not in ACTIVE
        or not is_idle(job.lease_expires_at, clock.shared_now())
    ):
        return False
    close_books(job_id=job_id, before_epoch=job.lease_epoch + 1, clock=clock)
    changes = {"lease_owner": "", "lease_expires_at": None}
    transition(job_id, Reason.PAUSED.change(), clock=clock, changes=changes)
    return True
