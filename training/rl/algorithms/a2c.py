"""Advantage actor-critic (Mnih et al. 2016, synchronous): one gradient step on each round's data, without clipping.

L = −E[A log π(a|s)] + c_v · ½ E[(V(s) − R)²] − c_e · entropy
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy.typing as npt

from training.base_model import setting
from training.rl.algorithms import losses
from training.rl.algorithms.algorithm import Algorithm, Slice, UpdateResult
from training.rl.algorithms.descent import Array, Objective, Slopes
from training.rl.algorithms.optimisation import Optimisation
from training.rl.returns import generalised_advantages
from training.rl.truncation import Truncating, Truncation, truncated_ratios

if TYPE_CHECKING:
    from training.rl.batch import Batch
    from training.rl.learner import LearnerState
    from training.rl.networks import Network


class A2C(Algorithm):
    """A2C: a single gradient step on each round's data. Simple, but needs many samples."""

    shuffles: ClassVar[bool] = False

    kind: Literal["a2c"] = "a2c"
    learning_rate: float = setting(7e-4, "Learning rate", gt=0, le=1)
    trace_decay: float = setting(0.95, "GAE λ", ge=0, le=1)
    normalise_advantages: bool = setting(False, "Normalise advantages", advanced=True)

    def learn(
        self, state: LearnerState, batch: Batch, network: Network, progress: float, seed: int
    ) -> UpdateResult:
        optimisation = Optimisation(state, network, self, progress, self.minibatch_of(batch.size))
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        prepared = self.prepare(optimisation, batch, renormalised)
        chosen = optimisation.to_device(prepared.samples)
        objective = self.objective_of(optimisation.arrays, chosen, progress)
        optimisation.step(chosen["observations"], chosen["actions"], objective)
        return self.result_of(optimisation, batch, prepared, optimisation.next_state(renormalised), passes=1)

    def prepare(
        self,
        optimisation: Optimisation,
        batch: Batch,
        renormalised: LearnerState,
        start: Mapping[str, npt.NDArray[Any]] | None = None,
        truncating: Truncating | None = None,
    ) -> Slice:
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
        samples = {
            "observations": observations,
            "actions": batch.actions,
            "advantages": advantages,
            "targets": targets,
        }
        measured = {"approximate_kl": 0.0, "clip_fraction": 0.0}
        return Slice(samples, values, advantages, targets, measured=measured)

    def objective_of(
        self,
        arrays: Any,
        chosen: dict[str, Array],
        progress: float,
        truncation: Truncation | None = None,
    ) -> Objective:
        plain = partial(losses.actor_critic, chosen["advantages"], chosen["targets"], self.value_coefficient)
        if truncation is None:
            return plain

        def weighted(log_probs: Array, values: Array) -> Slopes:
            own = arrays.exp(log_probs - chosen["log_probs"])
            weights = truncated_ratios(arrays, own, chosen.get("others"), truncation.limit)
            slopes = plain(log_probs, values)
            return slopes._replace(log_probs=slopes.log_probs * weights)

        return weighted
