"""The part of a spec that names an environment, and the shape of what an agent sees and does there."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, field_validator

from training.environments import catalogue
from training.frozen import Frozen


class EnvironmentSpec(Frozen):
    id: str = Field(
        "CartPole-v1",
        title="Environment",
        description="A Gymnasium id, such as CartPole-v1 or Hopper-v5.",
        max_length=100,
    )

    @field_validator("id")
    @classmethod
    def known(cls, value: str) -> str:
        catalogue.require_known(value)
        return value


@dataclass(frozen=True)
class Spaces:
    """What a policy needs to know of an environment: the size of what it sees, and how it acts.

    `action_count` is set for discrete actions, `action_low` and `action_high` for continuous ones.
    """

    observation_size: int
    action_count: int | None
    action_low: tuple[float, ...] = ()
    action_high: tuple[float, ...] = ()

    @property
    def discrete(self) -> bool:
        return self.action_count is not None

    @property
    def policy_outputs(self) -> int:
        return self.action_count if self.action_count is not None else len(self.action_low)
