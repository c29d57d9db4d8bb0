"""Services of schedulers: start and stop a training, remove a scheduler. The worker gets a message on commit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction

from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.running.leases import idle, is_idle
from webapp.money.amounts import picodollars
from webapp.schedulers import leases, queries
from webapp.schedulers.leases import ACTIVE
from webapp.schedulers.models import Scheduler, SchedulerTraining, TrainingState, Version
from webapp.schedulers.request import (
    CompleteRequest,
    TrainingRequest,
    complete_request,
    fine_tuned,
    workload_of,
)

RESEND_AFTER = timedelta(seconds=4)
_AT_ONCE = 20
_TRAIN = "webapp.schedulers.tasks.train_scheduler"


class TrainingRefused(ValueError):
    """The requested training is not possible; `problems` name the fields."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = list(problems)


def obstacles(project: Any, request: TrainingRequest) -> list[Problem]:
    """What prevents this training: a sentence for each field, or none."""
    found = _complete(project, request)
    return found if isinstance(found, list) else []


def _complete(
    project: Any, request: TrainingRequest
) -> tuple[CompleteRequest, Version | None] | list[Problem]:
    workload = workload_of(request.workload)
    if workload is None:
        return [Problem("workload", f"Workload (workload): there is no preset {request.workload!r}.")]
    found = complete_request(request, workload)
    if isinstance(found, list):
        return found
    begin_with = None
    if request.begin_with:
        begin_with = queries.version_in(project, request.begin_with)
        if begin_with is None:
            sentence = "Begin with (begin_with): this project has no such scheduler; choose one, or none."
            return [Problem("begin_with", sentence)]
        most = int(begin_with.training.spec["actors_max"])
        if most != found.spec.actors_max:
            path = "scheduling.actors_max"
            return [
                Problem(
                    path,
                    f"Most actors ({path}): {begin_with} chooses from 1 to {most:,} actors, and what begins with it"
                    f" must too; {found.spec.actors_max:,} was given. Set it to {most:,}, or begin from scratch.",
                )
            ]
    return found, begin_with


def continue_with(start: TrainingRequest, version: Version) -> TrainingRequest:
    """The same training, fine-tuned from that version: with its range of actors and ten real episodes."""
    settings = {**start.scheduling.model_dump(), "actors_max": version.training.spec["actors_max"]}
    changes = {"begin_with": version.key, "name": f"{version.scheduler.name}, fine-tuned"[:60]}
    return TrainingRequest.model_validate(
        {**start.model_dump(), **changes, "scheduling": fine_tuned(settings)}
    )


@transaction.atomic
def request_training(
    *,
    project: Any,
    user: Any,
    request: TrainingRequest,
    search: str = "",
    tell_worker: bool = True,
    clock: Clock = SYSTEM_CLOCK,
) -> SchedulerTraining:
    """Create a queued training; `tell_worker` False for one that this process runs. Raises TrainingRefused."""
    found = _complete(project, request)
    if isinstance(found, list):
        raise TrainingRefused(found)
    whole, begin_with = found
    now = clock.now()
    training = SchedulerTraining.objects.create(
        project=project,
        name=request.name,
        asked_by=user,
        asked_at=now,
        since=now,
        spec=whole.spec.model_dump(mode="json"),
        platform=request.platform.model_dump(mode="json"),
        workload=request.workload,
        workload_key=whole.workload_key,
        budget_picodollars=picodollars(request.budget_usd),
        begin_with=begin_with,
        search=search,
    )
    if tell_worker:
        transaction.on_commit(lambda: send_hint(_TRAIN, training.pk), robust=True)
    return training


@transaction.atomic
def stop_training(*, training: SchedulerTraining, clock: Clock = SYSTEM_CLOCK) -> SchedulerTraining:
    """Stop a training before its next episode. One that has ended stays as it is; recorded rounds are kept."""
    row = SchedulerTraining.objects.select_for_update().get(pk=training.pk)
    if row.state in ACTIVE:
        row.stop_asked = True
        if is_idle(row.lease_expires_at, clock.shared_now()):  # no process will read the request
            row.state, row.reason = TrainingState.STOPPED, "Stopped on request."
            row.since = row.finished_at = clock.now()
        row.save(update_fields=["stop_asked", "state", "reason", "since", "finished_at"])
    return row


@transaction.atomic
def remove_scheduler(*, scheduler: Scheduler) -> None:
    """Its versions go with it. Recorded rounds stay, and so do jobs, whose specs hold the weights."""
    scheduler.delete()


def look_after_trainings(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Send messages again for trainings that wait or whose process is gone."""
    leases.free_leases_of_the_dead(clock=clock)
    now = clock.shared_now()
    waiting = SchedulerTraining.objects.filter(idle(now), state__in=ACTIVE, since__lte=now - RESEND_AFTER)
    waiting.filter(stop_asked=True).update(
        state=TrainingState.STOPPED, reason="Stopped on request.", since=now, finished_at=now
    )
    for training_id in waiting.order_by("since").values_list("pk", flat=True)[:_AT_ONCE]:
        if not send_hint(_TRAIN, training_id):
            break
