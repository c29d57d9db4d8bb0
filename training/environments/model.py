"""The part of a spec that names an environment, and the shape of what an agent sees and does there."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pydantic import Field, field_validator

from training.environments import catalogue
from training.frozen import Frozen


class EnvironmentSpec(Frozen):
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


@dataclass(frozen=True)
class Spaces:
    """What a policy needs to know of an environment: the shape of what it sees, and how it acts.

    Pictures are bytes of [channel, row, column]; everything else is a vector of float32. `action_counts` holds the
    number of choices of each discrete action; `action_low` and `action_high` are for continuous ones.
    """

    observation_shape: tuple[int, ...]
    action_counts: tuple[int, ...] = ()
    action_low: tuple[float, ...] = ()
    action_high: tuple[float, ...] = ()

    @property
    def pictures(self) -> bool:
        return len(self.observation_shape) == 3

    @property
    def observation_size(self) -> int:
        return prod(self.observation_shape)

    @property
    def discrete(self) -> bool:
        return bool(self.action_counts)

    @property
    def policy_outputs(self) -> int:
        """Logits of all discrete choices, or means of continuous actions."""
        return sum(self.action_counts) if self.action_counts else len(self.action_low)
