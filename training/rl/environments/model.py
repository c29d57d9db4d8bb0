"""The part of a spec that names an environment."""

from __future__ import annotations

from pydantic import field_validator

from training.base_model import FrozenModel, setting
from training.rl.environments import catalogue


class EnvironmentSpec(FrozenModel):
    id: str = setting(
        "CartPole-v1",
        "Environment",
        "A Gymnasium id, such as CartPole-v1, Hopper-v5 or ALE/Qbert-v5.",
        max_length=100,
    )
    frame_stack: int = setting(
        4, "Frames seen at once", "Atari only.", ge=1, le=8, unit="frames", advanced=True
    )

    @field_validator("id")
    @classmethod
    def known(cls, value: str) -> str:
        catalogue.require_known(value)
        return value
