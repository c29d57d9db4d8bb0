"""Schedulers, agents that decide the number of actors: their versions, trainings and fine-tunings."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from django.conf import settings
from django.db.models import Max
from django.http import HttpResponse
from django.urls import reverse
from pydantic import AliasPath, BaseModel, Field, StringConstraints

from training.scheduling.agents import AnyAgent
from webapp.accounts.models import Project, User
from webapp.api.auth import Token
from webapp.api.idempotency import create_once
from webapp.api.paging import After, Cursor, Limit, NumberedPage, Page, RowId, newest_first, oldest_first
from webapp.api.router import ApiRouter, EditorsProject, OwnersProject, Person, ViewersProject
from webapp.api.routes.jobs import Key
from webapp.api.schemas import Request, Shape, Usd
from webapp.http.responses import or_404
from webapp.schedulers import persist, queries, services
from webapp.schedulers.models import Scheduler, SchedulerTraining, Version
from webapp.schedulers.persist import exported
from webapp.schedulers.request import TrainingRequest
from webapp.schedulers.text import chosen, status_of
from webapp.schedulers.verdicts import Worth, verdict_of

router = ApiRouter(tags=["schedulers"])
_ONE = "/projects/{slug}/schedulers/{scheduler_id}"
_VERSION = f"{_ONE}/versions/{{number}}"
_TRAINING = "/projects/{slug}/scheduler-trainings/{training_id}"


_Text = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]


class SchedulerShape(Shape):
    """A scheduler: a name in a project, with its versions."""

    id: str
    name: str
    created_at: datetime
    versions: int = Field(validation_alias="version_count")
    newest: str | None = Field(description="Names its newest version in a job's spec.")
    url: str = Field(description="Its page.")


class UsualShape(BaseModel):
    """Means of the last twenty episodes of a kind."""

    score: float
    platform_s: float
    rounds: float
    actors: float
    best_return: float
    episodes: int


class FactsShape(BaseModel):
    """What a training took. Its dollars are simulated: no one pays them."""

    episodes: int = Field(description="Real ones: whole trainings on the simulated cloud.")
    reached: int = Field(description="Of those, how many reached the target.")
    rehearsals: int
    recorded: int = Field(description="Trainings with fixed plans, for rehearsals.")
    cost_usd: Usd = Field(validation_alias="cost_picodollars")
    wall_s: float = Field(description="Of this installation's machine.")
    platform_s: float = Field(description="Of the simulated cloud.")
    best_return: float | None
    rehearsed: UsualShape | None
    real: UsualShape | None = Field(description="If far from `rehearsed`, recorded rounds predict little.")


class VersionShape(Shape):
    """A scheduler as one training left it."""

    id: str = Field(
        validation_alias="key", description="Names it in a job's spec, and to begin another training with."
    )
    name: str = Field(validation_alias=AliasPath("scheduler", "name"))
    number: int
    made_at: datetime
    training: int = Field(validation_alias="training_id")
    workload: str = Field(validation_alias=AliasPath("training", "workload"))
    agent: str = Field(description="minionsrl decides actors, siren functions and their memory.")
    subject: str = Field(description="What its trainings learn.")
    actors_max: int
    target: float
    facts: FactsShape
    worth: Worth = Field(description="Whether it did better than the best fixed number that was recorded.")
    worth_words: str = Field(description="Why.")
    chosen: str = Field(description="Which agent of its training it is, and why; empty without a choice.")


class TrainingShape(Shape):
    id: int
    name: str
    state: str = Field(description="queued, running, done, stopped, failed")
    state_words: str
    sentence: str = Field(description="Its progress, or why it ended.")
    asked_at: datetime = Field(validation_alias="requested_at")
    asked_by: str = Field(validation_alias=AliasPath("requested_by", "email"))
    started_at: datetime | None
    finished_at: datetime | None
    workload: str
    agent: str
    subject: str
    actors_max: int
    target: float
    episodes_asked: int
    rehearsals_asked: int
    budget_usd: Usd = Field(validation_alias="budget_picodollars", description="Of an episode, simulated.")
    begun_with: str | None
    version: str | None = Field(description="What it made.")
    url: str = Field(description="Its page.")


class TrainingProgress(TrainingShape):
    facts: FactsShape = Field(description="So far.")


class EpisodeShape(Shape):
    """An episode. `id` rises from episode to episode, also where the number restarts."""

    id: int
    kind: str = Field(description="grid, rehearsal, real, judged")
    number: int = Field(
        description="Of the grid, its actors or its place; of those judged, 1 is the best agent, 2 the last."
    )
    at: datetime
    rounds: int
    platform_s: float
    wall_s: float
    cost_usd: Usd = Field(validation_alias="cost_picodollars")
    best_return: float | None
    reached: bool
    score: float | None
    actors: list[int] = Field(description="Round by round.")
    memory_mb: list[int] = Field(description="Round by round, of agents that decide it.")


class NewTraining(TrainingRequest):
    """The fields of the form."""


class FineTuning(Request):
    """Another task for a version: by default ten real episodes and no rehearsals."""

    model_config = {"allow_inf_nan": False}

    workload: _Text = Field(description="A preset, whose training it is to schedule.")
    name: Annotated[str, StringConstraints(max_length=60, pattern=r"^[^\x00]*$")] = Field(
        "", description="Empty: as its scheduler, fine-tuned."
    )
    data: _Text = Field("", description="A data set, for a workload that learns from data.")
    target: float | None = Field(None, description="Null: the environment's reference, or the preset's loss.")
    rounds: int | None = Field(None, ge=2, le=10_000)
    budget_usd: Decimal = Field(Decimal("1"), gt=0, le=10_000, decimal_places=6)
    episodes: int = Field(10, ge=1, le=10_000)

    def changes(self) -> dict[str, Any]:
        """The fields other than the scheduler's settings."""
        return self.model_dump(exclude={"episodes"} | ({"name"} if not self.name else set()))


@router.get("/projects/{slug}/schedulers", summary="Schedulers, newest first")
def list_schedulers(project: ViewersProject, cursor: Cursor = "", limit: Limit = 50) -> Page[SchedulerShape]:
    rows = _schedulers(project)
    return newest_first(rows, "created_at", cursor, limit, lambda row: _scheduler(project.slug, row))


@router.get(_ONE, summary="One scheduler")
def get_scheduler(project: ViewersProject, scheduler_id: str) -> SchedulerShape:
    return _scheduler(
        project.slug, _schedulers(project).get(pk=queries.scheduler_in(project, scheduler_id).pk)
    )


@router.delete(_ONE, auth=Token("manage"), response=204, summary="Remove a scheduler")
def remove_scheduler(project: OwnersProject, scheduler_id: str) -> None:
    """With its versions. Jobs that use them keep their own copy. For owners."""
    services.remove_scheduler(scheduler=queries.scheduler_in(project, scheduler_id))


@router.get(f"{_ONE}/versions", summary="Versions of a scheduler, newest first")
def list_scheduler_versions(
    project: ViewersProject, scheduler_id: str, cursor: Cursor = "", limit: Limit = 50
) -> Page[VersionShape]:
    scheduler = queries.scheduler_in(project, scheduler_id)
    rows = queries.versions_of(project).filter(scheduler=scheduler)
    return newest_first(rows, "made_at", cursor, limit, _version)


@router.get(_VERSION, summary="A version with its weights, to keep")
def get_scheduler_version(project: ViewersProject, scheduler_id: str, number: RowId) -> dict[str, Any]:
    """The same file as on the page. Its part `scaling` can be copied into any spec."""
    return exported(_version_in(project, scheduler_id, number))


@router.post(
    f"{_VERSION}/fine-tunings",
    auth=Token("jobs"),
    response=202,
    summary="Fine-tune a version for another task",
)
def fine_tune_scheduler(
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
    return _request_training(project, person, response, wanted, idempotency_key)


@router.get("/projects/{slug}/scheduler-trainings", summary="Trainings of schedulers, newest first")
def list_scheduler_trainings(
    project: ViewersProject, cursor: Cursor = "", limit: Limit = 50
) -> Page[TrainingShape]:
    rows = queries.trainings_of(project).select_related(
        "version__scheduler", "requested_by", "begin_with__scheduler"
    )
    return newest_first(rows, "requested_at", cursor, limit, lambda row: _training(project.slug, row))


@router.post(
    "/projects/{slug}/scheduler-trainings", auth=Token("jobs"), response=202, summary="Train a scheduler"
)
def train_scheduler(
    project: EditorsProject,
    person: Person,
    response: HttpResponse,
    training: NewTraining,
    idempotency_key: Key = "",
) -> TrainingShape:
    """The worker trains it on the simulated cloud: nothing is paid. Poll Location until it is over."""
    return _request_training(project, person, response, training, idempotency_key)


@router.get(_TRAINING, response=(200, 304), summary="A training's progress")
def get_scheduler_training(project: ViewersProject, training_id: RowId) -> TrainingProgress:
    training = queries.training_in(project, training_id)
    progress = _training(project.slug, training, persist.facts(training))
    assert isinstance(progress, TrainingProgress)
    return progress


@router.get(f"{_TRAINING}/episodes", summary="Episodes of a training, in order")
def list_training_episodes(
    project: ViewersProject, training_id: RowId, after: After = 0, limit: Limit = 100
) -> NumberedPage[EpisodeShape]:
    training = queries.training_in(project, training_id)
    return oldest_first(training.episodes.defer("reports"), after, limit, EpisodeShape.of)


@router.post(f"{_TRAINING}/stop", auth=Token("jobs"), summary="Stop a training")
def stop_scheduler_training(project: EditorsProject, training_id: RowId) -> TrainingShape:
    """The running episode is dropped, recorded ones stay. A training that is over stays as it is."""
    services.stop_training(training=queries.training_in(project, training_id))
    return _training(project.slug, queries.training_in(project, training_id))


def _request_training(
    project: Project, person: User, response: HttpResponse, wanted: TrainingRequest, key: str
) -> TrainingShape:
    def make() -> SchedulerTraining:
        return services.request_training(project=project, user=person, request=wanted)

    made = create_once(project, "training", key, wanted, make, response)
    response["Location"] = reverse("api_v1:get_scheduler_training", args=[project.slug, made])
    return _training(project.slug, queries.training_in(project, int(made)))


def _schedulers(project: Project) -> Any:
    return queries.schedulers_of(project).annotate(newest=Max("versions__number"))


def _version_in(project: Project, scheduler_id: str, number: int) -> Version:
    return or_404(queries.version_in(project, f"{scheduler_id}.{number}"), "version")


def _scheduler(slug: str, scheduler: Scheduler) -> SchedulerShape:
    newest = scheduler.newest  # type: ignore[attr-defined]
    return SchedulerShape.of(
        scheduler,
        newest=None if newest is None else f"{scheduler.pk}.{newest}",
        url=settings.STARLING_BASE_URL + reverse("schedulers:scheduler", args=[slug, scheduler.pk]),
    )


def _version(version: Version) -> VersionShape:
    spec = version.training.parsed_spec
    verdict = verdict_of(version.facts, spec)
    words = {"worth": verdict.worth, "worth_words": verdict.sentence, "chosen": chosen(version.facts)}
    return VersionShape.of(version, **_task(spec), **words)


def _task(spec: AnyAgent) -> dict[str, Any]:
    return {
        "agent": spec.kind,
        "subject": spec.workload.subject,
        "actors_max": spec.actors_max,
        "target": spec.target,
    }


def _training(slug: str, training: SchedulerTraining, facts: dict[str, Any] | None = None) -> TrainingShape:
    """The training; with facts, its progress."""
    status, version = status_of(training), getattr(training, "version", None)
    model = TrainingShape if facts is None else TrainingProgress
    return model.of(
        training,
        **_task(training.parsed_spec),
        state_words=status.word,
        sentence=status.sentence,
        episodes_asked=training.spec["episodes"],
        rehearsals_asked=training.spec["rehearsals"],
        begun_with=None if training.begin_with is None else training.begin_with.key,
        version=None if version is None else version.key,
        facts=facts,
        url=settings.STARLING_BASE_URL + reverse("schedulers:training", args=[slug, training.pk]),
    )
