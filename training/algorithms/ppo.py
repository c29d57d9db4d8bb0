"""Proximal policy optimisation with GAE (Schulman et al. 2017), with the details that decide whether it learns.

One update computes the values of all states under the current critic, then advantages, then makes several passes of
shuffled minibatches over

    L = E[ max(−A r, −A clip(r, 1−ε, 1+ε)) ] + c_v · value loss − c_e · entropy,   r = π_θ(a|s) / π_behaviour(a|s)

with the gradient clipped by its global norm and one Adam step a minibatch. For data that is some versions old, the
decoupled objective (Hilton et al. 2021) clips around π_prox, the policy at the start of the update, instead. It
weights by the ratio of π_prox to the behaviour: L = E[ −π_prox/π_behaviour · min(u A, clip(u) A) ], u = π_θ/π_prox.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from training.algorithms import losses
from training.algorithms.algorithm import (
    ADVANCED,
    Algorithm,
    Floats,
    UpdateResult,
    collect_update_samples,
    explained_variance,
)
from training.algorithms.descent import Anchor, Array, Slopes
from training.algorithms.optimisation import Optimisation
from training.returns import generalised_advantages

if TYPE_CHECKING:
    from training.architectures import CNN, MLP
    from training.batch import Batch
    from training.learner import LearnerState

_WEIGHT_LIMIT = 2.0


class PPO(Algorithm):
    """PPO: learns from each round's data in a few clipped passes."""

    kind: Literal["ppo"] = "ppo"
    trace_decay: float = Field(0.95, ge=0, le=1, title="GAE λ")
    clip: float = Field(0.2, gt=0, le=1, title="Clip range ε")
    clip_decay: bool = Field(False, title="Decay the clip range", json_schema_extra=ADVANCED)
    epochs: int = Field(10, ge=1, le=100, title="Passes over the data")
    minibatch_size: int = Field(
        256, ge=1, le=1_000_000, title="Minibatch", json_schema_extra={"unit": "samples"}
    )
    value_clip: float | None = Field(
        None,
        gt=0,
        le=1000,
        title="Value clip",
        description="Empty: values are not clipped.",
        json_schema_extra=ADVANCED,
    )
    value_error: Literal["half_square", "clamped_square"] = Field(
        "half_square",
        title="Value error",
        description=(
            "Half square: PPO2's, which clips how far a value moves. Clamped square: RLlib's, the whole square, which"
            " counts as the value clip where it is larger."
        ),
        exclude_if=lambda value: value == "half_square",
        json_schema_extra=ADVANCED,
    )
    normalise_advantages: bool = Field(True, title="Normalise advantages", json_schema_extra=ADVANCED)
    recompute_advantages: bool = Field(
        False,
        title="Recompute advantages each pass",
        description="With the critic as it is by then.",
        json_schema_extra=ADVANCED,
    )
    target_kl: float | None = Field(
        None,
        gt=0,
        le=100,
        title="KL limit",
        description="Stop an update's passes early beyond 1.5 times this. Empty: never.",
        json_schema_extra=ADVANCED,
    )
    kl_coefficient: float = Field(
        0.0,
        ge=0,
        le=100,
        title="KL penalty",
        description="First weight of an adaptive penalty that aims at the KL target; 0: none.",
        json_schema_extra=ADVANCED,
    )
    kl_target: float = Field(0.01, gt=0, le=10, title="KL target of the penalty", json_schema_extra=ADVANCED)
    objective: Literal["clipped", "decoupled"] = Field(
        "clipped",
        title="Objective",
        description="Decoupled: for data that may be some versions old.",
        json_schema_extra=ADVANCED,
    )

    @property
    def initial_kl_coefficient(self) -> float:
        return self.kl_coefficient

    @property
    def surrogate_clip(self) -> float | None:
        return self.clip

    def learn(
        self, state: LearnerState, batch: Batch, network: MLP | CNN, progress: float, seed: int
    ) -> UpdateResult:
        """Update the state with several passes over `batch`. Observations are normalised as this version's actors
        normalised them, so ratios of fresh data start at 1 up to rounding. The batch's own statistics count from the
        next version on.
        """
        anchor = Anchor(state.parameters, state.kl_coefficient) if self.kl_coefficient else None
        optimisation = Optimisation(state, network, self, progress, anchor)
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        observations = optimisation.observations(batch)
        rewards = self.rewards(batch, renormalised)
        values, advantages = self._advantages(optimisation, batch, observations, rewards)
        targets = advantages + values
        samples = {"observations": observations, "actions": batch.actions, "log_probs": batch.log_probs}
        if self.objective == "decoupled":
            samples["start_log_probs"] = optimisation.log_probs(batch, observations)
        device_arrays = optimisation.to_device(samples)
        rng = np.random.Generator(np.random.PCG64(seed))
        clip = self.clip * (1.0 - progress) if self.clip_decay else self.clip
        passes = 0
        for passes in range(1, self.epochs + 1):
            if passes > 1 and self.recompute_advantages:
                values, advantages = self._advantages(optimisation, batch, observations, rewards)
                targets = advantages + values
            device_arrays |= optimisation.to_device(
                {"advantages": advantages, "values": values, "targets": targets}
            )
            for chosen in optimisation.minibatches_of(device_arrays, self.minibatch_size, rng):
                objective = partial(self.slopes, optimisation.arrays, chosen, clip)
                optimisation.step(chosen["observations"], chosen["actions"], objective)
            if self.target_kl is not None and optimisation.last("approximate_kl") > 1.5 * self.target_kl:
                break
        report = optimisation.report(explained_variance(targets, values))
        renormalised = replace(
            renormalised, kl_coefficient=self._next_kl_coefficient(state, optimisation.means())
        )
        return UpdateResult(
            optimisation.next_state(renormalised),
            report,
            optimisation.minibatches,
            batch.size * passes,
            collect_update_samples(observations, batch, advantages, targets),
        )

    def _advantages(
        self, optimisation: Optimisation, batch: Batch, observations: Floats, rewards: Floats
    ) -> tuple[Floats, Floats]:
        """Return the values of all states, and their GAE advantages."""
        values = optimisation.values(observations)
        following = optimisation.next_values(batch, values)
        advantages = generalised_advantages(
            rewards, values, following, batch.terminated, batch.ended, self.discount, self.trace_decay
        )
        return values, advantages

    def slopes(
        self, arrays: Any, chosen: dict[str, Array], clip: float, log_probs: Array, values: Array
    ) -> Slopes:
        """Return a minibatch's loss gradients, given the network's current log-probabilities and values."""
        decoupled = self.objective == "decoupled"
        behaviour = chosen["log_probs"]
        reference = chosen["start_log_probs"] if decoupled else behaviour
        log_ratio = log_probs - reference
        ratio = arrays.exp(log_ratio)
        advantages = chosen["advantages"]
        n = len(advantages)
        if self.normalise_advantages and n > 1:
            advantages = losses.standardise(arrays, advantages)
        gains, rising = losses.clipped_gains(arrays, ratio, advantages, clip)
        if decoupled:
            weights = arrays.exp(reference - behaviour).clip(max=_WEIGHT_LIMIT)
            gains, rising = gains * weights, rising * weights
        value_loss, by_value = self._value_loss(arrays, values, chosen)
        moved = ratio - 1.0
        measured = {
            "policy_loss": -losses.mean(gains),
            "value_loss": value_loss,
            # k3 of Schulman's note on approximating KL: unbiased, never negative, low variance.
            "approximate_kl": losses.mean(moved - log_ratio),
            "clip_fraction": losses.mean(abs(moved) > clip),
        }
        return Slopes(rising * (-1.0 / n), by_value * self.value_coefficient, measured)

    def _value_loss(self, arrays: Any, values: Array, chosen: dict[str, Array]) -> tuple[Array, Array]:
        """Return ½ E[(V − R)²] and its derivatives. With a value clip, each sample's loss is the larger of that of V
        and that of V clipped around its old value. RLlib's is E[min((V − R)², clip)].
        """
        if self.value_error == "clamped_square":
            return losses.clamped_square(arrays, values, chosen["targets"], self.value_clip)
        if self.value_clip is None:
            return losses.squared_error(values, chosen["targets"])
        before, errors = chosen["values"], values - chosen["targets"]
        near = before + (values - before).clip(-self.value_clip, self.value_clip) - chosen["targets"]
        own, clipped = errors * errors, near * near
        # Where the clipped loss is the larger one, it does not depend on the value any more.
        slopes = arrays.where(own >= clipped, errors, 0.0) * (1.0 / len(errors))
        return 0.5 * losses.mean(arrays.maximum(own, clipped)), slopes

    def _next_kl_coefficient(self, state: LearnerState, means: dict[str, float]) -> float:
        """Return the next coefficient: 1.5 times as much if the divergence is over twice its target, half if it is
        under half.
        """
        if not self.kl_coefficient:
            return state.kl_coefficient
        if means["divergence"] > 2.0 * self.kl_target:
            return state.kl_coefficient * 1.5
        return (
            state.kl_coefficient * 0.5 if means["divergence"] < 0.5 * self.kl_target else state.kl_coefficient
        )
