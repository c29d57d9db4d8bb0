"""The settings of a training of Siren's agent: what it chooses from, its objective, and how it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from training.algorithms.ppo import PPO
from training.architectures import MLP
from training.base_model import FrozenModel
from training.reports import RoundReport
from training.scaling.siren import Siren
from training.scheduling.decisions import UsualRound
from training.scheduling.policy_gradient import PolicyGradient
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud, ArithmeticRehearsals
from training.scheduling.siren.choices import Choices
from training.scheduling.siren.decisions import FunctionDecisions
from training.scheduling.siren.state import STATE_SIZE, Objective, Scales, StateKind
from training.spaces import Spaces

_ADVANCED: dict[str, Any] = {"advanced": True}
_ENDLESS = float("inf")


class SirenSettings(FrozenModel):
    """What the agent chooses from and how it learns, for any workload."""

    actors_min: int = Field(1, ge=1, le=4096, title="Fewest functions")
    actors_max: int = Field(150, ge=1, le=4096, title="Most functions")
    memory_min_mb: int = Field(256, ge=128, le=10_240, title="Least memory", json_schema_extra={"unit": "MB"})
    memory_max_mb: int = Field(3008, ge=128, le=10_240, title="Most memory", json_schema_extra={"unit": "MB"})
    episodes: int = Field(
        5,
        ge=0,
        le=10_000,
        title="Real episodes",
        description="Each is a whole training on the simulated cloud.",
    )
    rehearsals: int = Field(
        3200,
        ge=0,
        le=1_000_000,
        title="Rehearsals",
        description="Episodes on arithmetic that was fitted to recorded epochs. They take hardly any time.",
    )
    objective: Objective = Field(
        "time",
        title="Keep small",
        description="Time: the least time within the budget. Cost: the least dollars before a deadline.",
    )
    deadline_s: float | None = Field(
        None,
        gt=0,
        title="Deadline",
        description="Of the least dollars. Empty: none.",
        json_schema_extra={"unit": "s"},
    )
    beta: float = Field(0.1, gt=0, lt=1, title="Reward coefficient β", json_schema_extra=_ADVANCED)
    final_reward: float = Field(
        1.0,
        gt=0,
        le=1e6,
        title="Final reward C",
        description="Normalised: in units of what a usual training is charged. Printed: as it is.",
        json_schema_extra=_ADVANCED,
    )
    reward: Literal["printed", "normalised"] = Field(
        "normalised",
        title="Reward",
        description="Printed: seconds or dollars as they are.",
        json_schema_extra=_ADVANCED,
    )
    state: StateKind = Field(
        "normalised",
        title="State",
        description="Printed: plain numbers, as on the slides.",
        json_schema_extra=_ADVANCED,
    )
    algorithm_kind: Literal["policy_gradient", "ppo"] = Field(
        "policy_gradient",
        title="Algorithm",
        description="The policy gradient is printed on the slides.",
        json_schema_extra=_ADVANCED,
    )
    learning_rate: float = Field(0.01, gt=0, le=1, title="Learning rate", json_schema_extra=_ADVANCED)
    discount: float = Field(1.0, gt=0, le=1, title="Discount γ", json_schema_extra=_ADVANCED)
    deviation: float = Field(
        -1.0,
        ge=-5,
        le=2,
        title="First log deviation",
        description="In halves of a range.",
        json_schema_extra=_ADVANCED,
    )
    entropy_coefficient: float = Field(0.0, ge=0, le=10, title="Entropy weight", json_schema_extra=_ADVANCED)
    together: int = Field(32, ge=1, le=1000, title="Rehearsals for an update", json_schema_extra=_ADVANCED)
    seed: int = Field(0, ge=0, le=2**31 - 1, title="Seed", json_schema_extra=_ADVANCED)

    @model_validator(mode="after")
    def in_order(self) -> SirenSettings:
        if self.actors_min > self.actors_max:
            raise ValueError("the fewest functions must not be more than the most functions")
        if self.memory_min_mb > self.memory_max_mb:
            raise ValueError("the least memory must not be more than the most memory")
        if not self.episodes and not self.rehearsals:
            raise ValueError("an agent needs real episodes or rehearsals to learn from")
        return self


class SirenSpec(SirenSettings):
    """An agent for trainings that are to reach `target_loss` in about `rounds` epochs. An episode is one of them."""

    schema_version: Literal[1] = 1
    target_loss: float = Field(gt=0, title="Target loss", description="What a training has to reach.")
    rounds: int = Field(20, ge=1, le=10_000, title="Epochs of an episode at most")

    @property
    def network(self) -> MLP:
        """Two layers of 64 with tanh; the deviation depends on the state."""
        return MLP(hidden=(64, 64), activation="tanh", log_std="state", log_std_initial=self.deviation)

    @property
    def spaces(self) -> Spaces:
        return Spaces((STATE_SIZE,), (), (-_ENDLESS, -_ENDLESS), (_ENDLESS, _ENDLESS))

    @property
    def choices(self) -> Choices:
        return Choices(
            actors_min=self.actors_min,
            actors_max=self.actors_max,
            memory_min_mb=self.memory_min_mb,
            memory_max_mb=self.memory_max_mb,
        )

    @property
    def scales(self) -> Scales:
        deadline_s = self.deadline_s if self.objective == "cost" else None
        return Scales(target_loss=self.target_loss, rounds=self.rounds, deadline_s=deadline_s)

    def algorithm(self, episodes: int = 1) -> PolicyGradient | PPO:
        common: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "learning_rate_decay": True,
            "discount": self.discount,
            "entropy_coefficient": self.entropy_coefficient,
        }
        if self.algorithm_kind == "policy_gradient":
            return PolicyGradient(**common, standardise=self.reward == "normalised")
        return PPO(**common, trace_decay=1.0, epochs=4, minibatch_size=max(64, 16 * episodes))

    def policy(self, weights: str, *, explore: bool) -> Siren:
        """Return the scaling policy that decides with these weights."""
        return Siren(
            actors_min=self.actors_min,
            actors_max=self.actors_max,
            memory_min_mb=self.memory_min_mb,
            memory_max_mb=self.memory_max_mb,
            target_loss=self.target_loss,
            rounds=self.rounds,
            deadline_s=self.scales.deadline_s,
            state=self.state,
            explore=explore,
            weights=weights,
        )

    def decisions(self, recorded: Sequence[Sequence[RoundReport]]) -> FunctionDecisions:
        return FunctionDecisions(self, UsualRound.of([report for rounds in recorded for report in rounds]))

    def rehearsing(self, recorded: Sequence[Sequence[RoundReport]]) -> ArithmeticRehearsals:
        return ArithmeticRehearsals(ArithmeticCloud.fit(recorded), self, self.decisions(recorded))

    def unlike(self, other: Spaces) -> str:
        if other == self.spaces:
            return ""
        return (
            "the scheduler to begin with decides only how many actors: take one that decides memory as well"
        )
