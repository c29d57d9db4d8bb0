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
from training.base_model import FrozenModel, setting
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
    name: str = setting("Training", "Name", min_length=1, max_length=100)
    tags: tuple[TagName, ...] = setting(
        (),
        "Tags",
        "Words to find the job by and to count its money under, separated by commas.",
        max_length=10,
        advanced=True,
    )
    group: str = setting(
        "",
        "Group",
        "Jobs of one group, such as the seeds of one question, may share a budget.",
        max_length=100,
        advanced=True,
    )
    training: AnyTraining = TrainingSpec()
    platform: AnyPlatformOptions = Field(default_factory=LocalOptions, title="Platform")
    budget_usd: Decimal = setting(
        Decimal("1"),
        "Budget",
        "The job stops before it can spend more. Several seeds share it evenly.",
        gt=0,
        le=1_000_000,
        decimal_places=BUDGET_DECIMALS,
        unit="USD",
    )
    at_line: Literal["drain", "fewer", "stop"] = setting(
        "drain",
        "At the budget's limit",
        "drain: no round begins that might not fit. fewer: the same, with fewer actors from 80 % on. stop:"
        " use it up, and lose the round that does not fit.",
        advanced=True,
    )

    films: bool = setting(
        True,
        "Films",
        "After an evaluation the worker films the agent for a few seconds, in at most 5 % of the job's time."
        " It costs the job nothing.",
        advanced=True,
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
