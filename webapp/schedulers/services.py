"""Services of schedulers: start and stop a training, remove a scheduler. The worker gets a message on commit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction

from training.scaling.fixed import Fixed
from training.scheduling.agents import AnyAgent
from training.scheduling.siren.model import SirenWorkload
from training.supervised.models import simplest_model
from training.tasks.supervised_spec import Supervised
from training.tasks.training import Training
from webapp.accounts.models import Project, User
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.leases import expire_dead, idle, is_idle
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.job_memory import memory_obstacle
from webapp.jobs.launch.project_choices import data_sets
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import picodollars
from webapp.schedulers import queries
from webapp.schedulers.leases import ACTIVE
from webapp.schedulers.models import Scheduler, SchedulerTraining, TrainingState, Version
from webapp.schedulers.request import (
    CompleteRequest,
    TrainingRequest,
    complete_request,
    fine_tuned,
    workload_of,
)
from webapp.schedulers.text import choices

RESEND_AFTER = timedelta(seconds=4)
_AT_ONCE = 20
_TRAIN = "webapp.schedulers.tasks.train_scheduler"
_RANGES = {
    "minionsrl": ("actors_max",),
    "siren": ("actors_min", "actors_max", "memory_min_mb", "memory_max_mb"),
}
"""What an agent chooses from: its weights mean nothing for another range."""


class TrainingRefused(ValueError):
    """The requested training is not possible; `problems` name the fields."""

    def __init__(self, problems: Sequence[SpecProblem]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = list(problems)


def obstacles(project: Project, request: TrainingRequest) -> list[SpecProblem]:
    """What prevents this training: a sentence for each field, or none."""
    found = _complete(project, request)
    return found if isinstance(found, list) else []


def _complete(
    project: Project, request: TrainingRequest
) -> tuple[CompleteRequest, Version | None] | list[SpecProblem]:
    workload = _workload(project, request)
    if isinstance(workload, SpecProblem):
        return [workload]
    found = complete_request(request, workload)
    if isinstance(found, list):
        return found
    if problems := [*_too_few_rows(project, found.spec), *_too_much_memory(request, found.spec)]:
        return problems
    begin_with = None
    if request.begin_with:
        begin_with = queries.version_in(project, request.begin_with)
        if begin_with is None:
            sentence = "Begin with (begin_with): this project has no such scheduler; choose one, or none."
            return [SpecProblem("begin_with", sentence)]
        if problem := _other_range(begin_with, found.spec):
            return [problem]
    return found, begin_with


def _workload(project: Project, request: TrainingRequest) -> Training | SpecProblem:
    """The preset's training, on the data set that was named; or why there is none."""
    workload = workload_of(request.workload)
    if workload is None:
        return SpecProblem("workload", f"Workload (workload): there is no preset {request.workload!r}.")
    if not request.data:
        return workload
    if not isinstance(workload, Supervised):
        words = f"{request.workload} learns from an environment. Name no data set, or take another workload."
        return SpecProblem("data", f"Data set (data): {words}")
    manifest = data_sets().manifest_of(project, request.data)
    if manifest is None:
        words = f"this project has no data set {request.data[:12]}. Choose another, or upload its table."
        return SpecProblem("data", f"Data set (data): {words}")
    changes: dict[str, Any] = {"data": request.data}
    if workload.model.misfit(manifest.shape):
        changes["model"] = simplest_model(manifest.shape)
    return workload.model_copy(update=changes)


def _too_few_rows(project: Project, spec: AnyAgent) -> list[SpecProblem]:
    """Why trainings with the most functions cannot learn from the data set."""
    if not isinstance(spec, SirenWorkload):
        return []
    training = spec.episode(Fixed(actors=spec.actors_max), seed=0)
    found = data_sets().obstacles(project, JobSpec(name="Recorded", training=training))
    path = "scheduling.actors_max"
    return [SpecProblem(path, f"Most functions ({path}): {problem.sentence}") for problem in found]


def _too_much_memory(request: TrainingRequest, spec: AnyAgent) -> list[SpecProblem]:
    """Why trainings with the most actors do not fit into this machine's memory."""
    training = spec.episode(Fixed(actors=spec.actors_max), seed=0)
    obstacle = memory_obstacle(JobSpec(name="Recorded", training=training, platform=request.platform))
    path = "scheduling.actors_max"
    return [SpecProblem(path, f"Most actors ({path}): {obstacle.sentence}")] if obstacle is not None else []


def _other_range(begin_with: Version, spec: AnyAgent) -> SpecProblem | None:
    """Why an agent that chooses as `spec` says cannot begin with that version."""
    other = begin_with.training.parsed_spec
    if other.kind != spec.kind:
        words = f"{begin_with} is an agent for {other.workload.subject}, which is trained in another way"
        return SpecProblem(
            "begin_with", f"Begin with (begin_with): {words}; choose one of the same kind, or none."
        )
    ranges = _RANGES[spec.kind]
    path = next((name for name in ranges if getattr(other, name) != getattr(spec, name)), None)
    if path is None:
        return None
    title = type(spec).model_fields[path].title
    theirs, given = getattr(other, path), getattr(spec, path)
    return SpecProblem(
        f"scheduling.{path}",
        f"{title} (scheduling.{path}): {begin_with} chooses from {choices(other)}, and what begins with it must too;"
        f" {given:,} was given. Set it to {theirs:,}, or begin from scratch.",
    )


def continue_with(start: TrainingRequest, version: Version) -> TrainingRequest:
    """The same training, fine-tuned from that version: with its range and ten real episodes."""
    spec = version.training.parsed_spec
    same = start.scheduling.kind == spec.kind
    settings = {
        **(start.scheduling.model_dump() if same else {"kind": spec.kind}),
        **{name: getattr(spec, name) for name in _RANGES[spec.kind]},
    }
    changes = {"begin_with": version.key, "name": f"{version.scheduler.name}, fine-tuned"[:60]}
    if not same:
        changes["workload"] = version.training.workload
    return TrainingRequest.model_validate(
        {**start.model_dump(), **changes, "scheduling": fine_tuned(settings)}
    )


@transaction.atomic
def request_training(
    *,
    project: Project,
    user: User,
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
        requested_by=user,
        requested_at=now,
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
        row.stop_requested = True
        if is_idle(row.lease_expires_at, clock.shared_now()):  # no process will read the request
            row.state, row.reason = TrainingState.STOPPED, "Stopped on request."
            row.since = row.finished_at = clock.now()
        row.save(update_fields=["stop_requested", "state", "reason", "since", "finished_at"])
    return row


@transaction.atomic
def remove_scheduler(*, scheduler: Scheduler) -> None:
    """Its versions go with it. Recorded rounds stay, and so do jobs, whose specs hold the weights."""
    scheduler.delete()


def look_after_trainings(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Send messages again for trainings that wait or whose process is gone."""
    expire_dead(SchedulerTraining, clock=clock)
    now = clock.shared_now()
    waiting = SchedulerTraining.objects.filter(idle(now), state__in=ACTIVE, since__lte=now - RESEND_AFTER)
    waiting.filter(stop_requested=True).update(
        state=TrainingState.STOPPED, reason="Stopped on request.", since=now, finished_at=now
    )
    for training_id in waiting.order_by("since").values_list("pk", flat=True)[:_AT_ONCE]:
        if not send_hint(_TRAIN, training_id):
            break
