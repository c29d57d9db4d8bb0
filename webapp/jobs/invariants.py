"""What must always be true of jobs, their rounds and events, read from the database alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Count, F, Max, Min, Q

from webapp.database.snapshot import database_snapshot
from webapp.job_states import ACTIVE, SUCCESSORS, TERMINAL, Observed
from webapp.jobs.models import EventKind, Job
from webapp.jobs.running.job_slots import core_places, on_cores, waiting_for_core
from webapp.money.invariants import money_findings

FORGOTTEN_AFTER = timedelta(seconds=60)
# Deleted jobs have no history.
_WHOLE = Job.objects.filter(deleted_at=None)


def findings(now: datetime) -> list[str]:
    """Return what is wrong with jobs and their money, a sentence each. Crash tests use it too.

    All is read from one snapshot, so that a running site shows no half of a change.
    """
    with database_snapshot():
        return [*money_findings(), *job_findings(now)]


def job_findings(now: datetime) -> Iterator[str]:
    """Yield everything that is wrong with jobs, a sentence each."""
    yield from _events_without_holes()
    yield from _states_along_the_graph()
    yield from _rounds_without_holes()
    yield from _steps_counted_once()
    yield from _checkpoints_of_rounds_that_count()
    yield from _no_job_abandoned(now)


def _events_without_holes() -> Iterator[str]:
    rows = _WHOLE.annotate(
        stored=Count("events"), first=Min("events__seq"), latest=Max("events__seq")
    ).filter(~Q(stored=F("last_seq")) | ~Q(latest=F("last_seq")) | ~Q(first=1))
    for job in rows:
        yield f"{job.pk}: of its events {job.first} to {job.latest} there are {job.stored}; the last is {job.last_seq}"


def _states_along_the_graph() -> Iterator[str]:
    for job in _WHOLE.only("pk", "observed"):
        rows = job.events.filter(kind=EventKind.STATE).order_by("seq")
        states = [Observed(state) for state in rows.values_list("payload__observed", flat=True) if state]
        if not states or states[-1] != job.observed:
            yield f"{job.pk}: it is {job.observed}, and its events do not say so"
        for before, after in pairwise(states):
            if after not in SUCCESSORS[before]:
                yield f"{job.pk}: it went from {before} to {after}"
        if sum(state in TERMINAL for state in states) > 1:
            yield f"{job.pk}: it ended more than once"


def _rounds_without_holes() -> Iterator[str]:
    rows = _WHOLE.annotate(
        kept=Count("events__round_no"), first=Min("events__round_no"), latest=Max("events__round_no")
    )
    for job in rows.exclude(kept=F("round_no")) | rows.filter(round_no__gt=0).exclude(first=1):
        yield f"{job.pk}: it is at round {job.round_no} and keeps {job.kept} rounds, {job.first} to {job.latest}"
    for late in Job.objects.filter(events__epoch__gt=F("lease_epoch")).distinct():
        yield f"{late.pk}: a round was written under an epoch that never was"


def _steps_counted_once() -> Iterator[str]:
    """Each round continues from the steps of the round before, also after a resume."""
    for job in _WHOLE.filter(round_no__gt=0).only("pk", "total_progress"):
        total = 0
        reports = job.rounds.order_by("round_no").values_list(
            "round_no", "payload__report__env_steps", "payload__report__total_env_steps"
        )
        for round_no, steps, so_far in reports.iterator(2000):
            total += steps
            if so_far != total:
                yield f"{job.pk}: after round {round_no} it counts {so_far} steps, its rounds made {total}"
                break
        else:
            if job.total_progress != total:
                yield f"{job.pk}: it counts {job.total_progress} steps, its rounds made {total}"


def _checkpoints_of_rounds_that_count() -> Iterator[str]:
    for job in Job.objects.filter(checkpoints__round_no__gt=F("round_no")).distinct():
        yield f"{job.pk}: it keeps a checkpoint of a round after its last"


def _no_job_abandoned(now: datetime) -> Iterator[str]:
    """A job that should run has a lease, lost it a short time ago, or waits while all cores are in use."""
    ago = now - FORGOTTEN_AFTER
    gone = Q(lease_expires_at__lt=ago) | Q(lease_expires_at__isnull=True, since__lt=ago)
    forgotten = Job.objects.filter(gone, observed__in=ACTIVE)
    if on_cores().count() >= core_places():
        forgotten = forgotten.exclude(pk__in=waiting_for_core(now).values("pk"))
    for job in forgotten:
        yield f"{job.pk}: it is {job.observed} and no process has run it for a minute"
