"""The settings of a training of MinionsRL's scheduler: the workload, the objective, and how it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from training.base_model import FrozenModel
from training.engine.reports import RoundReport
from training.rl.algorithms.ppo import PPO
from training.rl.networks import MLP
from training.rl.spaces import Spaces
from training.scaling import AnyScaling
from training.scaling.learned import Learned
from training.scheduling.decisions import FixedPlan, UsualRound
from training.scheduling.minionsrl.decisions import ActorDecisions
from training.scheduling.minionsrl.rehearsal import Rehearsal
from training.scheduling.minionsrl.state import STATE_SIZE, StateKind
from training.spec import TrainingSpec

_ADVANCED: dict[str, Any] = {"advanced": True}


class SchedulingSettings(FrozenModel):
    """MinionsRL: decides how many actors each round of an agent's training gets."""

    kind: Literal["minionsrl"] = "minionsrl"
    actors_max: int = Field(
        32, ge=2, le=1024, title="Most actors", description="It chooses from 1 to so many for each round."
    )
    episodes: int = Field(
        20,
        ge=0,
        le=10_000,
        title="Real episodes",
        description="Each is a whole training on the simulated cloud.",
    )
    rehearsals: int = Field(
        500,
        ge=0,
        le=10_000,
        title="Rehearsals",
        description="Episodes assembled from recorded rounds beforehand. They take hardly any time.",
    )
    objective: Literal["time", "cost"] = Field(
        "time", title="Keep small", description="What each round is charged for: its seconds or its dollars."
    )
    beta: float = Field(0.1, gt=0, lt=1, title="Reward coefficient β", json_schema_extra=_ADVANCED)
    reward: Literal["printed", "normalised"] = Field(
        "normalised",
        title="Reward",
        description="Printed: seconds and returns as they are. Normalised: against a usual round and the target.",
        json_schema_extra=_ADVANCED,
    )
    state: StateKind = Field(
        "normalised",
        title="State",
        description="Printed: plain numbers, as in the paper.",
        json_schema_extra=_ADVANCED,
    )
    learning_rate: float = Field(0.005, gt=0, le=1, title="Learning rate", json_schema_extra=_ADVANCED)
    minibatch_size: int = Field(
        4,
        ge=1,
        le=4096,
        title="Minibatch",
        description="Rounds of one episode for a step of the optimiser.",
        json_schema_extra=_ADVANCED,
    )
    clip: float = Field(0.2, gt=0, le=1, title="Clip range ε", json_schema_extra=_ADVANCED)
    entropy_coefficient: float = Field(0.01, ge=0, le=10, title="Entropy weight", json_schema_extra=_ADVANCED)
    value_coefficient: float = Field(
        0.5, ge=0, le=100, title="Value loss weight", json_schema_extra=_ADVANCED
    )
    passes: int = Field(10, ge=1, le=100, title="Passes over an episode", json_schema_extra=_ADVANCED)
    together: int = Field(
        10,
        ge=1,
        le=1000,
        title="Rehearsals for an update",
        description="A single episode is a noisy sample. Real ones are learned from one by one.",
        json_schema_extra=_ADVANCED,
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, title="Seed", json_schema_extra=_ADVANCED)

    @model_validator(mode="after")
    def does_something(self) -> SchedulingSettings:
        if not self.episodes and not self.rehearsals:
            raise ValueError("a scheduler needs real episodes or rehearsals to learn from")
        return self


class SchedulingSpec(SchedulingSettings):
    """A scheduler for trainings like `workload`, whose own scaling policy is ignored.

    An episode is one whole training. It ends at the workload's own stop rule, at the target or at the budget.
    """

    unit: ClassVar[str] = "actors"
    schema_version: Literal[1] = 1
    workload: TrainingSpec
    target_return: float = Field(title="Target return", description="What a training has to reach.")
    readings: int = Field(
        1,
        ge=1,
        le=100,
        title="Readings at the target",
        description="So many rounds in a row must return the target.",
        # Left out of stored specs, so that those from before this field stay what they were.
        exclude_if=lambda value: value == 1,
    )
    rounds: int = Field(20, ge=2, le=10_000, title="Rounds of an episode at most")

    @property
    def target(self) -> float:
        """The score that a training has to reach."""
        return self.target_return

    @property
    def fixed_plans(self) -> list[FixedPlan]:
        """Return what to record beforehand: an eighth to all of the range, for rehearsals. Without any rehearsals a
        single one, which says what a usual round takes and costs.
        """
        if not self.rehearsals:
            return [FixedPlan(max(1, self.actors_max // 2))]
        return [
            FixedPlan(actors) for actors in sorted({max(1, self.actors_max // part) for part in (8, 4, 2, 1)})
        ]

    def episode(self, scaling: AnyScaling, seed: int, memory_mb: int | None = None) -> TrainingSpec:
        """Return one training of the workload, scaled by `scaling`, that ends after `rounds` at the latest."""
        own = self.workload.stop
        rounds = self.rounds if own.rounds is None else min(own.rounds, self.rounds)
        stop = own.model_copy(update={"rounds": rounds, "target_return": None})
        changes: dict[str, Any] = {"scaling": scaling, "seed": seed, "stop": stop}
        if memory_mb is not None:
            changes["rollout"] = self.workload.rollout.model_copy(update={"memory_mb": memory_mb})
        return self.workload.model_copy(update=changes)

    @property
    def network(self) -> MLP:
        """Two layers of 64 with tanh, as in the paper."""
        return MLP(hidden=(64, 64), activation="tanh")

    @property
    def spaces(self) -> Spaces:
        return Spaces((STATE_SIZE,), (self.actors_max,), (), ())

    def algorithm(self, episodes: int = 1) -> PPO:
        """Return the same PPO that trains workloads, with whole-episode returns. A minibatch is `minibatch_size`
        rounds of each episode, so it is as many times larger as there are episodes.
        """
        return PPO(
            learning_rate=self.learning_rate,
            learning_rate_decay=False,
            discount=0.99,
            trace_decay=1.0,
            clip=self.clip,
            epochs=self.passes,
            minibatch_size=self.minibatch_size * episodes,
            entropy_coefficient=self.entropy_coefficient,
            value_coefficient=self.value_coefficient,
        )

    def policy(self, weights: str, *, explore: bool) -> Learned:
        """Return the scaling policy that decides with these weights."""
        return Learned(
            actors_max=self.actors_max,
            target_return=self.target_return,
            rounds=self.rounds,
            state=self.state,
            explore=explore,
            weights=weights,
        )

    def decisions(self, recorded: Sequence[Sequence[RoundReport]]) -> ActorDecisions:
        return ActorDecisions(self, UsualRound.of([report for rounds in recorded for report in rounds]))

    def rehearsing(self, recorded: Sequence[Sequence[RoundReport]]) -> Rehearsal:
        return Rehearsal(recorded, self)

    def mismatch(self, other: Spaces) -> str:
        if other == self.spaces:
            return ""
        most = other.action_counts[0] if other.action_counts else 0
        return (
            f"the scheduler to begin with chooses from 1 to {most} actors, this one is to"
            f" choose from 1 to {self.actors_max}: set the most actors to {most}"
        )
