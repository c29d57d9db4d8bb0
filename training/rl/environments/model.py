"""The part of a spec that names an environment."""

from __future__ import annotations

from pydantic import Field, field_validator

from training.base_model import FrozenModel
from training.rl.environments import catalogue


class EnvironmentSpec(FrozenModel):
    id: str = Field(
        "CartPole-v1",
        title="Environment",
        description="A Gymnasium id, such as CartPole-v1, Hopper-v5 or ALE/Qbert-v5.",
        max_length=100,
    )
    frame_stack: int = Field(
        4,
        ge=1,
        le=8,
        title="Frames seen at once",
        description="Atari only.",
        json_schema_extra={"advanced": True, "unit": "frames"},
    )

    @field_validator("id")
    @classmethod
    def known(cls, value: str) -> str:
        catalogue.require_known(value)
        return value
