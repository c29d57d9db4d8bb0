"""IMPALA (Espeholt et al. 2018): an actor-critic that corrects data of older policies with V-trace.

L = −E[ ρ_t log π(a|s) (r_t + γ v_{t+1} − V(s_t)) ] + c_v · ½ E[(V(s_t) − v_t)²] − c_e · entropy
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
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
from training.returns import vtrace

if TYPE_CHECKING:
    from training.architectures import CNN, MLP
    from training.batch import Batch
    from training.learner import LearnerState


class Impala(Algorithm):
    """IMPALA: learns from data of slightly older policies too, so no actor has to wait."""

    kind: Literal["impala"] = "impala"
    learning_rate: float = Field(6e-4, gt=0, le=1, title="Learning rate")
    entropy_coefficient: float = Field(0.01, ge=0, le=10, title="Entropy weight", json_schema_extra=ADVANCED)
    trace_decay: float = Field(0.95, ge=0, le=1, title="V-trace λ", json_schema_extra=ADVANCED)
    rho_limit: float = Field(1.0, gt=0, le=10, title="V-trace ρ limit", json_schema_extra=ADVANCED)
    c_limit: float = Field(1.0, gt=0, le=10, title="V-trace c limit", json_schema_extra=ADVANCED)
    minibatch_size: int = Field(
        256, ge=1, le=1_000_000, title="Minibatch", json_schema_extra={"unit": "samples"}
    )
    epochs: int = Field(1, ge=1, le=100, title="Passes over the data", json_schema_extra=ADVANCED)
    normalise_advantages: bool = Field(True, title="Normalise advantages", json_schema_extra=ADVANCED)

    def learn(
        self, state: LearnerState, batch: Batch, network: MLP | CNN, progress: float, seed: int
    ) -> UpdateResult:
        """Update the state. V-trace is computed again before each pass, because it depends on the current policy and
        critic.
        """
        optimisation = Optimisation(state, network, self, progress)
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        observations = optimisation.observations(batch)
        rewards = self.rewards(batch, renormalised)
        rng = np.random.Generator(np.random.PCG64(seed))
        device_arrays = optimisation.to_device({"observations": observations, "actions": batch.actions})
        distance = 0.0
        for _ in range(self.epochs):
            values = optimisation.values(observations)
            log_ratio = optimisation.log_probs(batch, observations) - batch.log_probs
            ratios = np.exp(np.clip(log_ratio, -20.0, 20.0))
            distance = float((ratios - 1.0 - log_ratio).mean())
            targets, advantages = vtrace(
                ratios,
                rewards,
                values,
                optimisation.next_values(batch, values),
                batch.terminated,
                batch.ended,
                self.discount,
                self.trace_decay,
                self.rho_limit,
                self.c_limit,
            )
            if self.normalise_advantages:
                advantages = advantages / (advantages.std() + 1e-8)
            device_arrays |= optimisation.to_device({"advantages": advantages, "targets": targets})
            for chosen in optimisation.minibatches_of(device_arrays, self.minibatch_size, rng):
                objective = partial(
                    losses.actor_critic, chosen["advantages"], chosen["targets"], self.value_coefficient
                )
                optimisation.step(chosen["observations"], chosen["actions"], objective)
        report = optimisation.report(
            explained_variance(targets, values),
            approximate_kl=distance,
            clip_fraction=float((ratios > self.rho_limit).mean()),
        )
        samples = batch.size * self.epochs
        update_samples = collect_update_samples(observations, batch, advantages, targets)
        return UpdateResult(
            optimisation.next_state(renormalised), report, optimisation.minibatches, samples, update_samples
        )
