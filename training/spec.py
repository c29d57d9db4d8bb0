"""The spec of a training: frozen and validated, one JSON document; the form is made from it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from training.base_model import FrozenModel, setting
from training.loops.model import AnyLoop
from training.loops.staleness_aware import StalenessAware
from training.loops.synchronous import Synchronous
from training.rl.algorithms import AnyAlgorithm
from training.rl.algorithms.ppo import PPO
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.expectations import expected_spaces
from training.rl.environments.model import EnvironmentSpec
from training.rl.networks import MLP, AnyNetwork
from training.rl.spaces import Spaces
from training.scaling import AnyScaling
from training.scaling.fixed import Fixed
from training.tasks.score import USUAL, Score
from training.tasks.training import Training

__all__ = ["RETURN", "AnyAlgorithm", "AnyNetwork", "AnyScaling", "StopRule", "TrainingSpec"]

RETURN = USUAL.score


class RolloutSpec(FrozenModel):
    steps_per_call: int = setting(
        256,
        "Steps per call",
        "Steps of each environment copy in one function call.",
        ge=1,
        le=65_536,
        unit="steps",
    )
    environments_per_actor: int = setting(1, "Environment copies per actor", ge=1, le=256, advanced=True)
    memory_mb: int = setting(
        1024,
        "Memory of an actor",
        "Decides price and CPU share where functions are billed by memory.",
        ge=128,
        le=10_240,
        unit="MB",
        advanced=True,
    )
    deadline_s: float = setting(
        60.0,
        "Longest call",
        "A call that takes longer is stopped. Tightened from what calls really take.",
        ge=1.0,
        le=900.0,
        unit="s",
        advanced=True,
    )
    attempts: int = setting(
        3,
        "Attempts",
        "How often a failed call is tried before its round goes on without it.",
        ge=1,
        le=10,
        advanced=True,
    )


class EvaluationSpec(FrozenModel):
    every_rounds: int = setting(10, "Evaluate every", ge=1, le=100_000, unit="rounds")
    episodes: int = setting(
        5,
        "Episodes per evaluation",
        "Whole episodes with the deterministic policy, on seeds never used for training.",
        ge=1,
        le=1000,
    )


class CheckpointSpec(FrozenModel):
    every_rounds: int = setting(10, "Checkpoint every", ge=1, le=100_000, unit="rounds", advanced=True)
    keep: int = setting(3, "Checkpoints kept", ge=1, le=1000, advanced=True)


class StopRule(FrozenModel):
    """When a run is over: whatever comes first. The budget is a separate stop, enforced by the ledger."""

    env_steps: int | None = setting(
        100_000,
        "Steps",
        "Environment steps in all. Data that is learned from again does not count again.",
        ge=1,
        le=10**11,
        unit="steps",
    )
    target_return: float | None = setting(
        None, "Target return", "Stop when three evaluations in a row reach this."
    )
    rounds: int | None = setting(None, "Rounds", ge=1, le=10_000_000, unit="rounds", advanced=True)
    minutes: float | None = setting(
        None,
        "Time",
        "On the platform's own clock, which is virtual on a simulated cloud.",
        gt=0,
        le=100_000,
        unit="min",
    )
    no_progress_evaluations: int | None = setting(
        None,
        "Patience",
        "Stop when this many evaluations in a row brought no new best.",
        ge=1,
        le=100_000,
        unit="evaluations",
        advanced=True,
    )

    @property
    def progress_limit(self) -> int | None:
        return self.env_steps

    @property
    def target_score(self) -> float | None:
        return self.target_return


class TrainingSpec(Training):
    """Reinforcement learning: what to learn, how, and when to stop."""

    progress_unit: ClassVar[str] = "steps"
    score: ClassVar[Score] = RETURN
    learned: ClassVar[str] = "policy"
    reviewed: ClassVar[tuple[tuple[str, str], ...]] = (
        ("Environment", "environment.id"),
        ("Algorithm", "algorithm.kind"),
    )
    limit_field: ClassVar[str] = "stop.env_steps"
    memory_field: ClassVar[str] = "rollout.memory_mb"

    kind: Literal["reinforcement"] = "reinforcement"
    schema_version: Literal[1] = 1
    environment: EnvironmentSpec = EnvironmentSpec()
    algorithm: AnyAlgorithm = Field(default_factory=PPO)
    network: AnyNetwork = Field(default_factory=MLP, validate_default=True)
    scaling: AnyScaling = Field(default_factory=Fixed)
    loop: AnyLoop = Field(default_factory=Synchronous)
    rollout: RolloutSpec = RolloutSpec()
    evaluation: EvaluationSpec = EvaluationSpec()
    checkpoints: CheckpointSpec = CheckpointSpec()
    stop: StopRule = StopRule()
    seed: int = setting(
        0, "Seed", "The same seed gives the same run, whichever worker answers first.", ge=0, le=2**31 - 1
    )

    @property
    def subject(self) -> str:
        return self.environment.id

    @property
    def expected_spaces(self) -> tuple[Spaces, bool]:
        """What the environment has to see and to do, and whether that is known or guessed."""
        return expected_spaces(self.environment, pictures=self.network.reads_pictures)

    @property
    def method(self) -> str:
        return self.algorithm.kind

    @property
    def memory_mb(self) -> int:
        return self.rollout.memory_mb

    @property
    def copies_a_call(self) -> int:
        return self.rollout.environments_per_actor

    @property
    def progress_a_call(self) -> int:
        return self.rollout.steps_per_call * self.copies_a_call

    @property
    def longest_call_s(self) -> float:
        return self.rollout.deadline_s

    @property
    def attempts(self) -> int:
        return self.rollout.attempts

    @field_validator("loop")
    @classmethod
    def fits_the_rest(cls, value: AnyLoop, info: ValidationInfo) -> AnyLoop:
        """Raise ValueError, one sentence, if learners cannot compute what the algorithm and the scaling ask for."""
        if isinstance(value, StalenessAware):
            algorithm, scaling = info.data.get("algorithm"), info.data.get("scaling")
            if algorithm is not None:
                _check_truncation(value, algorithm)
            if scaling is not None:
                _check_learners(value, scaling)
        return value

    @field_validator("network")
    @classmethod
    def fits_the_environment(cls, value: AnyNetwork, info: ValidationInfo) -> AnyNetwork:
        """Raise ValueError if the network does not fit spaces that are known without building the environment. Other
        spaces are checked before the first call.
        """
        environment = info.data.get("environment")
        if isinstance(environment, EnvironmentSpec) and environment.id in ENTRIES:
            value.layout(ENTRIES[environment.id].spaces(environment.frame_stack))
        return value


def _check_truncation(loop: StalenessAware, algorithm: AnyAlgorithm) -> None:
    is_clipped = isinstance(algorithm, PPO) and algorithm.objective == "clipped"
    if loop.truncated.is_inside_surrogate and not is_clipped:
        raise ValueError(
            f"the truncation {loop.truncation!r} changes the surrogate of PPO's clipped objective, which this algorithm"
            " does not have; 'constant' and 'off' suit every algorithm"
        )


def _check_learners(loop: StalenessAware, scaling: AnyScaling) -> None:
    if scaling.measures:
        raise ValueError(
            f"scaling by {scaling.kind.replace('_', ' ')} measures each update, and learners that compute gradients"
            " make none; choose a scaling that measures nothing"
        )
    if loop.fit_learners and loop.order == "launch":
        raise ValueError(
            "a number of learners that follows from times cannot repeat a run, which the order of launch is for; choose"
            " the order of arrival, or a fixed number of learners"
        )
    slices = -(-scaling.largest // loop.trajectories_per_gradient)
    if loop.actors_wait and loop.learners > slices:
        raise ValueError(
            f"{scaling.largest} actors that wait fill {slices} slices of {loop.trajectories_per_gradient} trajectories,"
            f" so no more than {slices} of {loop.learners} learners could ever work at once"
        )
