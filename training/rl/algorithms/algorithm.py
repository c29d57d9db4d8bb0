"""The base of all algorithms: their common fields and the steps that all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from training.base_model import FrozenModel, setting
from training.rl.algorithms.descent import Anchor, Array, Objective
from training.rl.figures import UpdateReport
from training.rl.learner import LearnerState
from training.rl.networks import Network, Parameters
from training.rl.spaces import Spaces
from training.rl.surfaces.update_samples import LossWeights, UpdateSamples, flatten_time
from training.rl.truncation import Truncating, Truncation

if TYPE_CHECKING:
    from training.rl.algorithms.optimisation import Optimisation
    from training.rl.batch import Batch

REWARD_CLIP = 10.0
ADVANCED: dict[str, Any] = {"advanced": True}
AdvantageTrace = Annotated[
    Literal["lambda", "full"],
    Field(
        title="V-trace advantages",
        description=(
            "Lambda: from λ-returns, so that those of fresh data are PPO's. Full: from the next state's whole target,"
            " as printed. Alike at λ = 1."
        ),
        exclude_if=lambda value: value == "lambda",
        json_schema_extra=ADVANCED,
    ),
]
Floats = npt.NDArray[np.float32]


class UpdateResult(NamedTuple):
    """The result of an update: the next state, its report, the amount of work, and the samples it learned from."""

    state: LearnerState
    report: UpdateReport
    minibatches: int
    samples: int
    update_samples: UpdateSamples


@dataclass(frozen=True)
class Slice:
    """Samples prepared for one pass. `samples` are what the objective takes, [time, copy, …] by name; `measured` is
    what the algorithm measures in its own way.
    """

    samples: dict[str, npt.NDArray[Any]]
    values: Floats
    advantages: Floats
    targets: Floats
    measured: dict[str, float] = field(default_factory=dict)


class Algorithm(FrozenModel):
    """The fields that every algorithm has. Each subclass adds its own fields and a method `learn`.

    `learn` makes all passes over a batch. A pass is `prepare`, then `objective_of` for each minibatch, so a gradient of
    a slice that is computed somewhere else is that of a minibatch here.
    """

    follows_a_target: ClassVar[bool] = False
    shuffles: ClassVar[bool] = True
    """Whether a pass takes its samples in random order."""

    learning_rate: float = setting(3e-4, "Learning rate", gt=0, le=1)
    learning_rate_decay: bool = setting(
        True, "Decay the learning rate", "In a straight line to zero over the whole run."
    )
    discount: float = setting(0.99, "Discount γ", ge=0, le=1)
    value_coefficient: float = setting(0.5, "Value loss weight", ge=0, le=100, advanced=True)
    entropy_coefficient: float = setting(0.0, "Entropy weight", ge=0, le=10, advanced=True)
    max_gradient_norm: float = setting(0.5, "Largest gradient norm", gt=0, le=1e6, advanced=True)
    gradient_clip: Literal["joint", "separate", "none"] = setting(
        "joint",
        "Gradient clip",
        "Joint: one norm over policy and critic. Separate: policy and critic each have their own. None:"
        " gradients are used as they are, RLlib's default.",
        exclude_if=lambda value: value == "joint",
        advanced=True,
    )
    normalise_observations: bool = setting(False, "Normalise observations")
    normalise_rewards: bool = setting(
        False, "Scale rewards", "By the running deviation of discounted returns."
    )
    clip_rewards: bool = setting(False, "Clip rewards to their sign", "As usual for Atari.", advanced=True)
    adam_epsilon: float = setting(1e-5, "Adam ε", gt=0, le=1, advanced=True)

    def initial_state(self, network: Network, spaces: Spaces, seed: int) -> LearnerState:
        """Return the state before the first update, with everything that this algorithm keeps in it."""
        return LearnerState.initial(
            network,
            spaces,
            seed,
            normalise_observations=self.normalise_observations,
            normalise_rewards=self.normalise_rewards,
            with_target=self.follows_a_target,
            kl_coefficient=self.initial_kl_coefficient,
        )

    def prepare(
        self,
        optimisation: Optimisation,
        batch: Batch,
        renormalised: LearnerState,
        start: Mapping[str, npt.NDArray[Any]] | None = None,
        truncating: Truncating | None = None,
    ) -> Slice:
        """Return the batch prepared for a pass under the current parameters. `start` is what the first pass kept.
        `truncating` limits V-trace's ρ, where an algorithm has one.
        """
        raise NotImplementedError

    def objective_of(
        self,
        arrays: Any,
        chosen: dict[str, Array],
        progress: float,
        truncation: Truncation | None = None,
    ) -> Objective:
        """Return the objective of chosen samples. With `truncation`, `chosen` may have the ratios of `others`."""
        raise NotImplementedError

    def result_of(
        self, optimisation: Optimisation, batch: Batch, prepared: Slice, state: LearnerState, passes: int
    ) -> UpdateResult:
        """Return the result of an update that passed over `batch` so often, last as `prepared`, and gave `state`.
        Raises BadLoss.
        """
        report = optimisation.report(
            explained_variance(prepared.targets, prepared.values), **prepared.measured
        )
        samples = collect_update_samples(
            prepared.samples["observations"], batch, prepared.advantages, prepared.targets
        )
        return UpdateResult(state, report, optimisation.minibatches, batch.size * passes, samples)

    def anchor(self, state: LearnerState, sampling: Sequence[Parameters] = ()) -> Anchor | None:
        """Return the anchor of a KL penalty, None without one. `sampling` are the policies that sampled the data, where
        it is not the state's own alone.
        """
        return None

    @property
    def anchors_to_sampling(self) -> bool:
        """Whether each sample's anchor is the policy that sampled it."""
        return False

    @property
    def kept_of_first_pass(self) -> tuple[str, ...]:
        """The names of samples that later passes bring as the first pass prepared them."""
        return ()

    @property
    def passes(self) -> int:
        """How often an update passes over its data."""
        return 1

    def minibatch_of(self, samples: int) -> int:
        """Return how many of an update's `samples` are learned from at once."""
        return min(samples, int(getattr(self, "minibatch_size", samples)))

    def is_enough(self, approximate_kl: float) -> bool:
        """Whether a pass that found this divergence is the last one."""
        return False

    def end_round(self, state: LearnerState, rounds: int) -> LearnerState:
        """Return `state` after what is due once an update of a round's data, where the round made several versions.
        `rounds` counts this one.
        """
        return state

    @property
    def initial_kl_coefficient(self) -> float:
        return 0.0

    @property
    def surrogate_clip(self) -> float | None:
        """The clip range ε of the surrogate's probability ratio; None if the ratio is not clipped."""
        return None

    @property
    def loss_weights(self) -> LossWeights:
        return LossWeights(self.value_coefficient, self.entropy_coefficient)

    @property
    def replay(self) -> tuple[int, int]:
        """How many batches an asynchronous loop keeps, and how many times each batch may be learned from in all."""
        return 1, 1

    def rate(self, progress: float) -> float:
        """Return the learning rate at `progress`, the fraction of the run that is over."""
        return self.learning_rate * (1.0 - progress) if self.learning_rate_decay else self.learning_rate

    def rewards(self, batch: Batch, renormalised: LearnerState) -> Floats:
        """Return rewards as the learner uses them. The normalisers of `renormalised` already include this batch."""
        rewards = np.sign(batch.rewards) if self.clip_rewards else batch.rewards
        if renormalised.return_moments is None:
            return rewards
        scaled: Floats = rewards * renormalised.return_moments.scale().astype(np.float32)
        return np.clip(scaled, -REWARD_CLIP, REWARD_CLIP)


def collect_update_samples(
    observations: npt.NDArray[Any], batch: Batch, advantages: Floats, targets: Floats
) -> UpdateSamples:
    """Return the samples of an update, flattened to [sample, …]. `observations` are already normalised."""
    return UpdateSamples(
        flatten_time(observations),
        flatten_time(batch.actions),
        flatten_time(batch.log_probs),
        flatten_time(advantages).astype(np.float32, copy=False),
        flatten_time(targets).astype(np.float32, copy=False),
        columns=batch.rewards.shape[1],
    )


def explained_variance(targets: Floats, values: Floats) -> float:
    """Return the share of the targets' variance that the critic explained: 1 is all of it, 0 is none, below 0 is
    harmful.
    """
    variance = float(targets.var())
    return 1.0 - float((targets - values).var()) / variance if variance > 0 else 0.0
