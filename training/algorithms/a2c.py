"""Advantage actor-critic (Mnih et al. 2016, synchronous): one gradient step on each round's data, without clipping.

L = −E[A log π(a|s)] + c_v · ½ E[(V(s) − R)²] − c_e · entropy
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from training.algorithms import losses
from training.algorithms.algorithm import (
    ADVANCED,
    Algorithm,
    UpdateResult,
    collect_update_samples,
    explained_variance,
)
from training.algorithms.optimisation import Optimisation
from training.returns import generalised_advantages

if TYPE_CHECKING:
    from training.architectures import CNN, MLP
    from training.batch import Batch
    from training.learner import LearnerState


class A2C(Algorithm):
    """A2C: a single gradient step on each round's data. Simple, but needs many samples."""

    kind: Literal["a2c"] = "a2c"
    learning_rate: float = Field(7e-4, gt=0, le=1, title="Learning rate")
    trace_decay: float = Field(0.95, ge=0, le=1, title="GAE λ")
    normalise_advantages: bool = Field(False, title="Normalise advantages", json_schema_extra=ADVANCED)

    def learn(
        self, state: LearnerState, batch: Batch, network: MLP | CNN, progress: float, seed: int
    ) -> UpdateResult:
        optimisation = Optimisation(state, network, self, progress)
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        observations = optimisation.observations(batch)
        values = optimisation.values(observations)
        advantages = generalised_advantages(
            self.rewards(batch, renormalised),
            values,
            optimisation.next_values(batch, values),
            batch.terminated,
            batch.ended,
            self.discount,
            self.trace_decay,
        )
        targets = advantages + values
        if self.normalise_advantages:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        device_arrays = optimisation.to_device(
            {
                "observations": observations,
                "actions": batch.actions,
                "advantages": advantages,
                "targets": targets,
            }
        )
        objective = partial(
            losses.actor_critic, device_arrays["advantages"], device_arrays["targets"], self.value_coefficient
        )
        optimisation.step(device_arrays["observations"], device_arrays["actions"], objective)
        report = optimisation.report(
            explained_variance(targets, values), approximate_kl=0.0, clip_fraction=0.0
        )
        update_samples = collect_update_samples(observations, batch, advantages, targets)
        return UpdateResult(
            optimisation.next_state(renormalised),
            report,
            optimisation.minibatches,
            batch.size,
            update_samples,
        )
