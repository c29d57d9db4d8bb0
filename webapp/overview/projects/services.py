"""Archiving a project: nothing runs in it any more, and its members may only look."""

from __future__ import annotations

from django.db import transaction

from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.queries import is_given_up
from webapp.formatting import plural
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.models import Job
from webapp.jobs.services import stop_job
from webapp.money.budgets import lock_project
from webapp.resources.profiling.models import MemoryProfile, ProfileState
from webapp.schedulers.leases import ACTIVE as TRAINING
from webapp.schedulers.models import SchedulerTraining
from webapp.schedulers.services import stop_training


class ProjectBusy(ValueError):
    """Something runs in the project; the text says what, and what to do."""


@transaction.atomic
def archive_project(
    *, project: Project, user: User, end_running: bool = False, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Make the project read-only. `end_running` stops its jobs and trainings; without it, ProjectBusy if any runs.

    A memory profile is never cut off, as it removes what it made in an account: ProjectBusy until it has ended or its
    worker gave no sign for so long that it is over.
    Launches lock the project too, so none slips in. Archiving it again changes nothing.
    """
    lock_project(project.pk)
    project.refresh_from_db()
    if project.archived_at is not None:
        return
    for profile in MemoryProfile.objects.filter(project=project).exclude(state=ProfileState.DONE):
        if not is_given_up(profile.state, profile.since, clock.now()):
            raise ProjectBusy(
                "A memory profile is being measured. Wait for its end, then archive the project."
            )
        profile.state, profile.problem = ProfileState.DONE, "No worker finished it."
        profile.save(update_fields=["state", "problem"])
    jobs, trainings = running_jobs(project), _running_trainings(project)
    if (jobs or trainings) and not end_running:
        raise ProjectBusy(f"{running_sentence(project)} End them first, or have them ended with it.")
    for job in jobs:
        stop_job(job=job, user=user, clock=clock)
    for training in trainings:
        stop_training(training=training, clock=clock)
    project.archived_at = clock.now()
    project.save(update_fields=["archived_at"])


def unarchive_project(*, project: Project) -> None:
    """Let members change the project again. Jobs that were ended stay ended."""
    project.archived_at = None
    project.save(update_fields=["archived_at"])


def running_jobs(project: Project) -> list[Job]:
    return list(Job.objects.filter(project=project, observed__in=ACTIVE).order_by("created_at", "pk"))


def running_sentence(project: Project) -> str:
    """What runs in the project, as a sentence; empty if nothing does."""
    active, trainings = running_jobs(project), len(_running_trainings(project))
    jobs, queued = len(active), sum(job.observed == Observed.QUEUED for job in active)
    parts = [plural(jobs, "job")] if jobs else []
    parts += [plural(trainings, "training of a scheduler", "trainings of schedulers")] if trainings else []
    if not parts:
        return ""
    if queued == jobs + trainings:
        return f"{parts[0]} {'is' if queued == 1 else 'are'} queued in this project."
    waits = f"; {queued:,} of the jobs {'is' if queued == 1 else 'are'} queued" if queued else ""
    return f"{' and '.join(parts)} {'runs' if jobs + trainings == 1 else 'run'} in this project{waits}."


def _running_trainings(project: Project) -> list[SchedulerTraining]:
    return list(SchedulerTraining.objects.filter(project=project, state__in=TRAINING).order_by("pk"))
