"""What a person asks for, whole: what is learned, where it runs and what it may cost.

One JSON document, produced alike by the form, the command line and the presets.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from cloud.local import LocalOptions
from cloud.simulated import SimulatedOptions
from training.frozen import Frozen
from training.spec import TrainingSpec
from webapp.jobs.problems import Problem

AnyPlatformOptions = Annotated[LocalOptions | SimulatedOptions, Field(discriminator="kind")]


@dataclass(frozen=True)
class Limits:
    """The most actors that this installation gives to one job, by kind of platform."""

    local: int
    simulated: int

    def actors(self, platform_kind: str) -> int:
        return self.local if platform_kind == "local" else self.simulated


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

    def check_limits(self, limits: Limits) -> list[Problem]:
        """Asks for more actors than this installation gives, if any: one sentence that names the field."""
        scaling = self.training.scaling
        allowed = limits.actors(self.platform.kind)
        if scaling.largest <= allowed:
            return []
        name = next(name for name, value in scaling if value == scaling.largest)
        title = type(scaling).model_fields[name].title
        path = f"training.scaling.{name}"
        sentence = (
            f"{title} ({path}) must be at most {allowed:,} on the {self.platform.kind} platform;"
            f" {scaling.largest:,} was given."
        )
        return [Problem(path, sentence)]
