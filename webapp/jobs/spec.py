"""What a person asks for, whole: what is learned, where it runs and what it may cost.

One JSON document, produced alike by the form, the command line and the presets.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from cloud.local import LocalOptions
from cloud.platforms import PlatformOptions
from training.frozen import Frozen
from training.spec import TrainingSpec
from webapp.jobs.problems import Problem

AnyPlatformOptions = Annotated[PlatformOptions, Field(discriminator="kind")]


@dataclass(frozen=True)
class Limits:
    """The most actors that this installation gives to one job, by kind of platform."""

    local: int
    simulated: int
    clouds: int = 1000

    def actors(self, platform_kind: str) -> int:
        return {"local": self.local, "simulated": self.simulated}.get(platform_kind, self.clouds)


class JobSpec(Frozen):
    schema_version: Literal[1] = 1
    name: str = Field("Training", min_length=1, max_length=100, title="Name")
    training: TrainingSpec = TrainingSpec()
    platform: AnyPlatformOptions = Field(default_factory=LocalOptions, title="Platform")
    budget_usd: Decimal = Field(
        Decimal("1"),
        gt=0,
        le=1_000_000,
        decimal_places=6,
        title="Budget",
        description="The job stops before it can spend more.",
        json_schema_extra={"unit": "USD"},
    )

    @property
    def simulated(self) -> bool:
        return self.platform.kind == "simulated"

    @property
    def needs_connection(self) -> bool:
        """Whether it runs in somebody's account, which only a project of the dashboard knows how to reach."""
        return self.platform.kind == "aws_lambda"

    @property
    def path_of_largest(self) -> str:
        """The field that says how many actors there are at most."""
        scaling = self.training.scaling
        return f"training.scaling.{next(name for name, value in scaling if value == scaling.largest)}"

    def check_limits(self, limits: Limits) -> list[Problem]:
        """Asks for more actors than this installation gives, if any: one sentence that names the field."""
        scaling = self.training.scaling
        allowed = limits.actors(self.platform.kind)
        if scaling.largest <= allowed:
            return []
        path = self.path_of_largest
        title = type(scaling).model_fields[path.rpartition(".")[2]].title
        sentence = (
            f"{title} ({path}) must be at most {allowed:,} on the {self.platform.kind} platform;"
            f" {scaling.largest:,} was given."
        )
        return [Problem(path, sentence)]
