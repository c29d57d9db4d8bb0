"""Schedulers, agents that decide the number of actors: their versions, trainings and fine-tunings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Max
from django.http import Http404, HttpResponse
from django.urls import reverse

from webapp.accounts.models import Project, User
from webapp.api.auth import Token
from webapp.api.idempotency import create_once
from webapp.api.paging import After, Cursor, Limit, NumberedPage, Page, RowId, newest_first, oldest_first
from webapp.api.problems import spec_refused
from webapp.api.router import ApiRouter, EditorsProject, OwnersProject, Person, ViewersProject
from webapp.api.routes.jobs import Key
from webapp.api.schemas.schedulers import (
    EpisodeShape,
    FactsShape,
    FineTuning,
    NewTraining,
    SchedulerShape,
    TrainingProgress,
    TrainingShape,
    VersionShape,
)
from webapp.money.amounts import exact_usd
from webapp.schedulers import persist, queries, services
from webapp.schedulers.documents import exported
from webapp.schedulers.models import Episode, Scheduler, SchedulerTraining, Version
from webapp.schedulers.request import TrainingRequest
from webapp.schedulers.text import chosen, standing

router = ApiRouter(tags=["schedulers"])
_ONE = "/projects/{slug}/schedulers/{scheduler_id}"
_VERSION = f"{_ONE}/versions/{{number}}"
_TRAINING = "/projects/{slug}/scheduler-trainings/{training_id}"


@router.get("/projects/{slug}/schedulers", response=Page[SchedulerShape], summary="Schedulers, newest first")
def list_schedulers(project: ViewersProject, cursor: Cursor = "", limit: Limit = 50) -> Page[SchedulerShape]:
    rows = _schedulers(project)
    return newest_first(rows, "created_at", cursor, limit, lambda one: _scheduler(project.slug, one))


@router.get(_ONE, response=SchedulerShape, summary="One scheduler")
def get_scheduler(project: ViewersProject, scheduler_id: str) -> SchedulerShape:
    return _scheduler(
        project.slug, _schedulers(project).get(pk=queries.scheduler_in(project, scheduler_id).pk)
    )


@router.delete(_ONE, auth=Token("manage"), response={204: None}, summary="Remove a scheduler")
def remove_scheduler(project: OwnersProject, scheduler_id: str) -> None:
    """With its versions. Jobs that use them keep their own copy. For owners."""
    services.remove_scheduler(scheduler=queries.scheduler_in(project, scheduler_id))


@router.get(f"{_ONE}/versions", response=Page[VersionShape], summary="Versions of a scheduler, newest first")
def list_versions(
    project: ViewersProject, scheduler_id: str, cursor: Cursor = "", limit: Limit = 50
) -> Page[VersionShape]:
    scheduler = queries.scheduler_in(project, scheduler_id)
    rows = queries.versions_of(project).filter(scheduler=scheduler)
    return newest_first(rows, "made_at", cursor, limit, _version)


@router.get(_VERSION, response=dict[str, Any], summary="A version with its weights, to keep")
def get_version(project: ViewersProject, scheduler_id: str, number: RowId) -> dict[str, Any]:
    """The same file as on the page. Its part `scaling` can be copied into any spec."""
    return exported(_version_in(project, scheduler_id, number))


@router.post(
    f"{_VERSION}/fine-tunings",
    auth=Token("jobs"),
    response={202: TrainingShape},
    summary="Fine-tune a version for another task",
)
def fine_tune(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    scheduler_id: str,
    number: RowId,
    tuning: FineTuning,
    idempotency_key: Key = "",
) -> TrainingShape:
    """A training like any other. Poll Location until its state says that it is over."""
    begun = services.continue_with(TrainingRequest(), _version_in(project, scheduler_id, number))
    scheduling = begun.scheduling.model_copy(update={"episodes": tuning.episodes})
    wanted = TrainingRequest.model_validate(
        {**begun.model_dump(), **tuning.changes(), "scheduling": scheduling.model_dump()}
    )
    return _asked_for(project, person, response, wanted, idempotency_key)


@router.get(
    "/projects/{slug}/scheduler-trainings",
    response=Page[TrainingShape],
    summary="Trainings of schedulers, newest first",
)
def list_trainings(project: ViewersProject, cursor: Cursor = "", limit: Limit = 50) -> Page[TrainingShape]:
    rows = queries.trainings_of(project).select_related(
        "version__scheduler", "asked_by", "begin_with__scheduler"
    )
    return newest_first(
        rows, "asked_at", cursor, limit, lambda one: TrainingShape(**_training(project.slug, one))
    )


@router.post(
    "/projects/{slug}/scheduler-trainings",
    auth=Token("jobs"),
    response={202: TrainingShape},
    summary="Train a scheduler",
)
def train(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    training: NewTraining,
    idempotency_key: Key = "",
) -> TrainingShape:
    """The worker trains it on the simulated cloud: nothing is paid. Poll Location until it is over."""
    return _asked_for(project, person, response, training, idempotency_key)


@router.get(
    _TRAINING,
    response={200: TrainingProgress, 304: None},
    url_name="get_training",
    summary="A training's progress",
)
def get_training(project: ViewersProject, training_id: RowId) -> TrainingProgress:
    found = queries.training_in(project, training_id)
    return TrainingProgress(**_training(project.slug, found), facts=_facts(persist.facts(found)))


@router.get(
    f"{_TRAINING}/episodes", response=NumberedPage[EpisodeShape], summary="Episodes of a training, in order"
)
def list_episodes(
    project: ViewersProject, training_id: RowId, after: After = 0, limit: Limit = 100
) -> NumberedPage[EpisodeShape]:
    training = queries.training_in(project, training_id)
    return oldest_first(training.episodes.defer("reports"), after, limit, _episode)


@router.post(f"{_TRAINING}/stop", auth=Token("jobs"), response=TrainingShape, summary="Stop a training")
def stop_training(project: EditorsProject, training_id: RowId) -> TrainingShape:
    """The running episode is dropped, recorded ones stay. A training that is over stays as it is."""
    services.stop_training(training=queries.training_in(project, training_id))
    return TrainingShape(**_training(project.slug, queries.training_in(project, training_id)))


def _asked_for(
    project: Project, person: User, response: HttpResponse, wanted: TrainingRequest, key: str
) -> TrainingShape:
    def make() -> SchedulerTraining:
        return services.request_training(project=project, user=person, request=wanted)

    try:
        made = create_once(project, "training", key, wanted, make)
    except services.TrainingRefused as refusal:
        raise spec_refused(refusal.problems) from None
    response["Location"] = reverse("api_v1:get_training", args=[project.slug, made])
    return TrainingShape(**_training(project.slug, queries.training_in(project, int(made))))


def _schedulers(project: Project) -> Any:
    return queries.schedulers_of(project).annotate(newest=Max("versions__number"))


def _version_in(project: Project, scheduler_id: str, number: int) -> Version:
    found = queries.version_in(project, f"{scheduler_id}.{number}")
    if found is None:
        raise Http404("There is no such version in this project.")
    return found


def _scheduler(slug: str, one: Scheduler) -> SchedulerShape:
    newest = one.newest  # type: ignore[attr-defined]
    return SchedulerShape(
        id=one.pk,
        name=one.name,
        created_at=one.created_at,
        versions=one.version_count,  # type: ignore[attr-defined]
        newest=None if newest is None else f"{one.pk}.{newest}",
        url=settings.STARLING_BASE_URL + reverse("schedulers:scheduler", args=[slug, one.pk]),
    )


def _version(one: Version) -> VersionShape:
    training = one.training
    return VersionShape(
        id=one.key,
        name=one.scheduler.name,
        number=one.number,
        made_at=one.made_at,
        training=training.pk,
        workload=training.workload,
        environment=training.spec["workload"]["environment"]["id"],
        actors_max=training.spec["actors_max"],
        target_return=training.spec["target_return"],
        facts=_facts(one.facts),
        chosen=chosen(one.facts),
    )


def _episode(one: Episode) -> EpisodeShape:
    return EpisodeShape(
        id=one.pk,
        kind=one.kind,
        number=one.number,
        at=one.at,
        rounds=one.rounds,
        platform_s=one.platform_s,
        wall_s=one.wall_s,
        cost_usd=exact_usd(one.cost_picodollars),
        best_return=one.best_return,
        reached=one.reached,
        score=one.score,
        actors=one.actors,
    )


def _facts(facts: dict[str, Any]) -> FactsShape:
    return FactsShape(**{**facts, "cost_usd": exact_usd(facts["cost_picodollars"])})


def _training(slug: str, one: SchedulerTraining) -> dict[str, Any]:
    status, spec = standing(one), one.spec
    version = getattr(one, "version", None)
    return {
        "id": one.pk,
        "name": one.name,
        "state": one.state,
        "state_words": status.word,
        "sentence": status.sentence,
        "asked_at": one.asked_at,
        "asked_by": one.asked_by.email,
        "started_at": one.started_at,
        "finished_at": one.finished_at,
        "workload": one.workload,
        "environment": spec["workload"]["environment"]["id"],
        "actors_max": spec["actors_max"],
        "target_return": spec["target_return"],
        "episodes_asked": spec["episodes"],
        "rehearsals_asked": spec["rehearsals"],
        "budget_usd": exact_usd(one.budget_picodollars),
        "begun_with": None if one.begin_with is None else one.begin_with.key,
        "version": None if version is None else version.key,
        "url": settings.STARLING_BASE_URL + reverse("schedulers:training", args=[slug, one.pk]),
    }
