"""The settings of a training of MinionsRL's scheduler: the workload, the objective, and how it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from training.base_model import FrozenModel, setting
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


class SchedulingSettings(FrozenModel):
    """MinionsRL: decides how many actors each round of an agent's training gets."""

    kind: Literal["minionsrl"] = "minionsrl"
    actors_max: int = setting(
        32, "Most actors", "It chooses from 1 to so many for each round.", ge=2, le=1024
    )
    episodes: int = setting(
        20, "Real episodes", "Each is a whole training on the simulated cloud.", ge=0, le=10_000
    )
    rehearsals: int = setting(
        500,
        "Rehearsals",
        "Episodes assembled from recorded rounds beforehand. They take hardly any time.",
        ge=0,
        le=10_000,
    )
    objective: Literal["time", "cost"] = setting(
        "time", "Keep small", "What each round is charged for: its seconds or its dollars."
    )
    beta: float = setting(0.1, "Reward coefficient β", gt=0, lt=1, advanced=True)
    reward: Literal["printed", "normalised"] = setting(
        "normalised",
        "Reward",
        "Printed: seconds and returns as they are. Normalised: against a usual round and the target.",
        advanced=True,
    )
    state: StateKind = setting(
        "normalised", "State", "Printed: plain numbers, as in the paper.", advanced=True
    )
    learning_rate: float = setting(0.005, "Learning rate", gt=0, le=1, advanced=True)
    minibatch_size: int = setting(
        4, "Minibatch", "Rounds of one episode for a step of the optimiser.", ge=1, le=4096, advanced=True
    )
    clip: float = setting(0.2, "Clip range ε", gt=0, le=1, advanced=True)
    entropy_coefficient: float = setting(0.01, "Entropy weight", ge=0, le=10, advanced=True)
    value_coefficient: float = setting(0.5, "Value loss weight", ge=0, le=100, advanced=True)
    passes: int = setting(10, "Passes over an episode", ge=1, le=100, advanced=True)
    together: int = setting(
        10,
        "Rehearsals for an update",
        "A single episode is a noisy sample. Real ones are learned from one by one.",
        ge=1,
        le=1000,
        advanced=True,
    )
    seed: int = setting(0, "Seed", ge=0, le=2**31 - 1, advanced=True)

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
    readings: int = setting(
        1,
        "Readings at the target",
        "So many rounds in a row must return the target.",
        ge=1,
        le=100,
        exclude_if=lambda value: value == 1,
    )
    rounds: int = setting(20, "Rounds of an episode at most", ge=2, le=10_000)

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
