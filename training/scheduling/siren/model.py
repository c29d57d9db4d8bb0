"""The settings of a training of Siren's agent: what it chooses from, its objective, and how it learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from training.base_model import FrozenModel, setting
from training.engine.reports import RoundReport
from training.rl.algorithms.ppo import PPO
from training.rl.networks import MLP
from training.rl.spaces import Spaces
from training.scaling import AnyEpochScaling
from training.scaling.siren import Siren
from training.scheduling.decisions import FixedPlan, UsualRound
from training.scheduling.policy_gradient import PolicyGradient
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud, ArithmeticRehearsals
from training.scheduling.siren.choices import Choices
from training.scheduling.siren.decisions import FunctionDecisions
from training.scheduling.siren.state import STATE_SIZE, Objective, SirenScales, StateKind
from training.tasks.supervised_spec import Supervised

_ENDLESS = float("inf")


class SirenSettings(FrozenModel):
    """Siren: decides how many functions each epoch gets, and how much memory each of them has."""

    kind: Literal["siren"] = "siren"
    actors_min: int = setting(1, "Fewest functions", ge=1, le=4096)
    actors_max: int = setting(32, "Most functions", ge=1, le=4096, own=True)
    memory_min_mb: int = setting(256, "Least memory", ge=128, le=10_240, unit="MB")
    memory_max_mb: int = setting(3008, "Most memory", ge=128, le=10_240, unit="MB")
    episodes: int = setting(
        5, "Real episodes", "Each is a whole training on the simulated cloud.", ge=0, le=10_000, own=True
    )
    rehearsals: int = setting(
        3200,
        "Rehearsals",
        "Episodes on arithmetic that was fitted to recorded epochs. They take hardly any time.",
        ge=0,
        le=1_000_000,
        own=True,
    )
    objective: Objective = setting(
        "time",
        "Keep small",
        "Time: the least time within the budget. Cost: the least dollars before a deadline.",
    )
    deadline_s: float | None = setting(
        None, "Deadline", "Where cost is kept small. Empty: none.", gt=0, unit="s"
    )
    beta: float = setting(0.1, "Reward coefficient β", gt=0, lt=1, advanced=True)
    final_reward: float = setting(
        1.0,
        "Final reward C",
        "Normalised: in units of what a usual training is charged. Printed: as it is.",
        gt=0,
        le=1e6,
        advanced=True,
    )
    reward: Literal["printed", "normalised"] = setting(
        "normalised", "Reward", "Printed: seconds or dollars as they are.", advanced=True
    )
    state: StateKind = setting(
        "normalised", "State", "Printed: plain numbers, as on the slides.", advanced=True
    )
    algorithm_kind: Literal["policy_gradient", "ppo"] = setting(
        "policy_gradient", "Algorithm", "The policy gradient is printed on the slides.", advanced=True
    )
    learning_rate: float = setting(0.01, "Learning rate", gt=0, le=1, own=True, advanced=True)
    discount: float = setting(1.0, "Discount γ", gt=0, le=1, advanced=True)
    deviation: float = setting(
        -1.0, "First log deviation", "In halves of a range.", ge=-5, le=2, advanced=True
    )
    entropy_coefficient: float = setting(0.0, "Entropy weight", ge=0, le=10, own=True, advanced=True)
    together: int = setting(32, "Rehearsals for an update", ge=1, le=1000, own=True, advanced=True)
    seed: int = setting(0, "Seed", ge=0, le=2**31 - 1, advanced=True)

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
    rounds: int = setting(20, "Epochs of an episode at most", ge=1, le=10_000)

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
    def scales(self) -> SirenScales:
        deadline_s = self.deadline_s if self.objective == "cost" else None
        return SirenScales(target_loss=self.target_loss, rounds=self.rounds, deadline_s=deadline_s)

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

    def mismatch(self, other: Spaces) -> str:
        if other == self.spaces:
            return ""
        return (
            "the scheduler to begin with decides only how many actors: take one that decides memory as well"
        )


class SirenWorkload(SirenSpec):
    """An agent for trainings like `workload`, whose own scaling policy is ignored.

    `sizes_mb` are the sizes of memory that there are where it trains; empty: those of the recorded trainings.
    """

    unit: ClassVar[str] = "functions"
    workload: Supervised
    sizes_mb: tuple[int, ...] = ()

    @property
    def target(self) -> float:
        """The score that a training has to reach."""
        return self.target_loss

    @property
    def fixed_plans(self) -> list[FixedPlan]:
        """Return what to record beforehand: few and many functions with little and much memory, for the arithmetic of
        rehearsals. Without any rehearsals a single one, which says what a usual epoch takes and costs.
        """
        least, most = self.memory_min_mb, self.memory_max_mb
        if self.sizes_mb:
            sizes = self.choices.sizes_mb(self.sizes_mb)
            least, most = sizes[0], sizes[-1]
        if not self.rehearsals:
            return [FixedPlan(max(self.actors_min, self.actors_max // 2), most)]
        few = max(self.actors_min, self.actors_max // 8, 1)
        plans = [FixedPlan(n, m) for n in (few, self.actors_max) for m in (least, most)]
        return list(dict.fromkeys(plans))

    def episode(self, scaling: AnyEpochScaling, seed: int, memory_mb: int | None = None) -> Supervised:
        """Return one training of the workload, scaled by `scaling`, that ends after `rounds` at the latest."""
        own = self.workload.stop
        rounds = self.rounds if own.rounds is None else min(own.rounds, self.rounds)
        stop = own.model_copy(update={"rounds": rounds, "target_loss": None})
        changes: dict[str, Any] = {"scaling": scaling, "seed": seed, "stop": stop}
        if memory_mb is not None:
            changes["calls"] = self.workload.calls.model_copy(update={"memory_mb": memory_mb})
        return self.workload.model_copy(update=changes)

    def rehearsing(self, recorded: Sequence[Sequence[RoundReport]]) -> ArithmeticRehearsals:
        fitted = ArithmeticCloud.fit(recorded)
        cloud = replace(fitted, sizes_mb=self.sizes_mb) if self.sizes_mb else fitted
        return ArithmeticRehearsals(cloud, self, self.decisions(recorded))
