"""Deleting a job for good: its data is removed, its cost stays in the ledger and in reports."""

from __future__ import annotations

import shutil
from typing import Any

from django.db import transaction

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.list.labels import LabelRefused
from webapp.jobs.models import FilmState, Job
from webapp.jobs.policies.films import film_folder
from webapp.jobs.running.run_log import log_file
from webapp.jobs.running.runner import checkpoint_folder
from webapp.money.models import ChargeState

_MADE = ("films", "surfaces", "checkpoints", "rounds", "events")
_AT_WORK = (FilmState.QUEUED, FilmState.FILMING)
_MEASURED = ("ready", "failed")


@transaction.atomic
def delete(*, job: Job, user: Any, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Delete the job's curves, events, log, checkpoints, films and surfaces. False if it was deleted already.

    LabelRefused unless it is archived and nothing of it is in progress. Files are deleted before the
    transaction commits: after a crash between the two, the user deletes the job again.
    """
    held = Job.objects.select_for_update().get(pk=job.pk)
    if held.deleted_at is not None:
        return False
    if obstacle := _obstacle(held):
        raise LabelRefused(obstacle)
    for made in _MADE:
        getattr(held, made).all().delete()
    changes = {"deleted_at": clock.now(), "note": ""}
    append_events(job.pk, [note(f"Deleted by {user}.")], clock=clock, changes=changes)
    for folder in (checkpoint_folder(job.pk), film_folder() / job.pk):
        shutil.rmtree(folder, ignore_errors=not folder.exists())
    log_file(job.pk).unlink(missing_ok=True)
    return True


def _obstacle(job: Job) -> str:
    """Return why the job cannot be deleted now and what to do; empty if it can."""
    if job.archived_at is None:
        return "Only an archived job can be deleted. Archive it first."
    if job.lease_owner or job.account.charges.filter(state=ChargeState.OPEN).exists():
        return "Its last calls are not settled yet, so what it cost is not known. Try again in a minute."
    if job.films.filter(state__in=_AT_WORK).exists():
        return "A film of it is being made. Try again when it is finished."
    if job.surfaces.exclude(state__in=_MEASURED).exists():
        return "A reward surface of it is being measured. Try again when it is finished."
    return ""
