"""A job's complete specification: what it learns, where it runs and what it may cost.

One JSON document, the same from the form, the command line and the presets.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from cloud.platforms.local import LocalOptions
from cloud.platforms.options import PLATFORMS, PlatformOptions
from training.base_model import FrozenModel
from training.spec import TrainingSpec
from training.tasks.kinds import AnyTraining
from webapp.http.request_bodies import check_values
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.money.amounts import BUDGET_DECIMALS

TagName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]
AnyPlatformOptions = Annotated[PlatformOptions, Field(discriminator="kind")]


@dataclass(frozen=True)
class Limits:
    """The most actors that this installation allows one job, by kind of platform."""

    local: int
    simulated: int
    clouds: int = 1000

    def actors(self, platform_kind: str) -> int:
        platform = PLATFORMS[platform_kind]
        if platform.is_simulated:
            return self.simulated
        return self.local if platform.computes_here else self.clouds


class JobSpec(FrozenModel):
    schema_version: Literal[1] = 1
    name: str = Field("Training", min_length=1, max_length=100, title="Name")
    tags: tuple[TagName, ...] = Field(
        (),
        max_length=10,
        title="Tags",
        description="Words to find the job by and to count its money under, separated by commas.",
        json_schema_extra={"advanced": True},
    )
    group: str = Field(
        "",
        max_length=100,
        title="Group",
        description="Jobs of one group, such as the seeds of one question, may share a budget.",
        json_schema_extra={"advanced": True},
    )
    training: AnyTraining = TrainingSpec()
    platform: AnyPlatformOptions = Field(default_factory=LocalOptions, title="Platform")
    budget_usd: Decimal = Field(
        Decimal("1"),
        gt=0,
        le=1_000_000,
        decimal_places=BUDGET_DECIMALS,
        title="Budget",
        description="The job stops before it can spend more. Several seeds share it evenly.",
        json_schema_extra={"unit": "USD"},
    )
    at_line: Literal["drain", "fewer", "stop"] = Field(
        "drain",
        title="At the budget's limit",
        description=(
            "drain: no round begins that might not fit. fewer: the same, with fewer actors from 80 % on."
            " stop: use it up, and lose the round that does not fit."
        ),
        json_schema_extra={"advanced": True},
    )

    films: bool = Field(
        True,
        title="Films",
        description=(
            "After an evaluation the worker films the agent for a few seconds, in at most 5 % of the job's time."
            " It costs the job nothing."
        ),
        json_schema_extra={"advanced": True},
    )

    @model_validator(mode="before")
    @classmethod
    def _short(cls, document: Any) -> Any:
        check_values(document)
        return document

    @property
    def simulated(self) -> bool:
        return self.platform.is_simulated

    @property
    def needs_connection(self) -> bool:
        """Whether the platform needs a connection of a project."""
        return not self.platform.computes_here

    @property
    def path_of_largest(self) -> str:
        """The path of the field with the largest number of actors."""
        scaling = self.training.scaling
        most = scaling.largest
        names = (
            name for name, value in scaling if value == most or (isinstance(value, tuple) and most in value)
        )
        return f"training.scaling.{next(names)}"

    def check_limits(self, limits: Limits) -> list[SpecProblem]:
        """Return a problem if the spec needs more actors than this installation allows."""
        scaling = self.training.scaling
        allowed = limits.actors(self.platform.kind)
        if scaling.largest <= allowed:
            return []
        path = self.path_of_largest
        title = self.training.declaration.say(type(scaling).model_fields[path.rpartition(".")[2]].title or "")
        sentence = (
            f"{title} ({path}) must be at most {allowed:,} on the {self.platform.kind} platform;"
            f" {scaling.largest:,} was given."
        )
        return [SpecProblem(path, sentence)]
