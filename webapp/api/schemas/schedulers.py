"""Schemas of schedulers and their trainings."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from webapp.api.schemas.jobs import Usd
from webapp.schedulers.request import TrainingRequest

_Text = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")]


class SchedulerShape(BaseModel):
    """A scheduler: a name in a project, with its versions."""

    id: str
    name: str
    created_at: datetime
    versions: int
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
    recorded: int = Field(description="Trainings with a fixed number of actors, for rehearsals.")
    cost_usd: Usd
    wall_s: float = Field(description="Of this installation's machine.")
    platform_s: float = Field(description="Of the simulated cloud.")
    best_return: float | None
    rehearsed: UsualShape | None
    real: UsualShape | None = Field(description="If far from `rehearsed`, recorded rounds predict little.")


class VersionShape(BaseModel):
    """A scheduler as one training left it."""

    id: str = Field(description="Names it in a job's spec, and to begin another training with.")
    name: str
    number: int
    made_at: datetime
    training: int
    workload: str
    environment: str
    actors_max: int
    target_return: float
    facts: FactsShape
    chosen: str = Field(description="Which agent of its training it is, and why; empty without a choice.")


class TrainingShape(BaseModel):
    id: int
    name: str
    state: str = Field(description="queued, running, done, stopped, failed")
    state_words: str
    sentence: str = Field(description="Its progress, or why it ended.")
    asked_at: datetime
    asked_by: str
    started_at: datetime | None
    finished_at: datetime | None
    workload: str
    environment: str
    actors_max: int
    target_return: float
    episodes_asked: int
    rehearsals_asked: int
    budget_usd: Usd = Field(description="Of an episode, simulated.")
    begun_with: str | None
    version: str | None = Field(description="What it made.")
    url: str = Field(description="Its page.")


class TrainingProgress(TrainingShape):
    facts: FactsShape = Field(description="So far.")


class EpisodeShape(BaseModel):
    """An episode. `id` rises from episode to episode, also where the number restarts."""

    id: int
    kind: str = Field(description="grid, rehearsal, real, judged")
    number: int = Field(
        description="Of the grid, its actors; of those judged, 1 is the best agent, 2 the last."
    )
    at: datetime
    rounds: int
    platform_s: float
    wall_s: float
    cost_usd: Usd
    best_return: float | None
    reached: bool
    score: float | None
    actors: list[int] = Field(description="Round by round.")


class NewTraining(TrainingRequest):
    """The fields of the form."""


class FineTuning(BaseModel):
    """Another task for a version: by default ten real episodes and no rehearsals."""

    model_config = {"extra": "forbid", "allow_inf_nan": False}

    workload: _Text = Field(description="A preset, whose training it is to schedule.")
    name: Annotated[str, StringConstraints(max_length=60, pattern=r"^[^\x00]*$")] = Field(
        "", description="Empty: as its scheduler, fine-tuned."
    )
    target_return: float | None = Field(None, description="Null: the environment's reference return.")
    rounds: int | None = Field(None, ge=2, le=10_000)
    budget_usd: Decimal = Field(Decimal("1"), gt=0, le=10_000, decimal_places=6)
    episodes: int = Field(10, ge=1, le=10_000)

    def changes(self) -> dict[str, Any]:
        """The fields other than the scheduler's settings."""
        return self.model_dump(exclude={"episodes"} | ({"name"} if not self.name else set()))
