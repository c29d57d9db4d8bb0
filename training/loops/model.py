"""The loops that a user can choose. Each is implemented in the file of its name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.base_model import FrozenModel


class Synchronous(FrozenModel):
    """Synchronous: the learner waits for all actors. The same seed gives the same weights."""

    kind: Literal["synchronous"] = "synchronous"

    @property
    def staleness_limit(self) -> int:
        return 0


class Pipelined(FrozenModel):
    """Pipelined: actors sample while the learner learns, always exactly one version behind. Repeatable too."""

    kind: Literal["pipelined"] = "pipelined"

    @property
    def staleness_limit(self) -> int:
        return 1


class Asynchronous(FrozenModel):
    """Asynchronous: actors and learner never wait; data that is too old is dropped."""

    kind: Literal["asynchronous"] = "asynchronous"
    staleness_limit: int = Field(
        4,
        ge=1,
        le=1000,
        title="Staleness limit",
        description="Data of a policy older than this is not learned from.",
        json_schema_extra={"unit": "versions"},
    )
    trajectories_per_update: int | None = Field(
        None,
        ge=1,
        le=4096,
        title="Trajectories per update",
        description="Empty: as many as there are actors.",
        json_schema_extra={"advanced": True},
    )


AnyLoop = Annotated[Synchronous | Pipelined | Asynchronous, Field(discriminator="kind")]
