"""IMPALA (Espeholt et al. 2018): an actor-critic that corrects data of older policies with V-trace.

L = −E[ ρ_t log π(a|s) (r_t + γ v_{t+1} − V(s_t)) ] + c_v · ½ E[(V(s_t) − v_t)²] − c_e · entropy
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from training.base_model import setting
from training.rl.algorithms import losses
from training.rl.algorithms.algorithm import AdvantageTrace, Algorithm, Slice, UpdateResult
from training.rl.algorithms.descent import Array, Objective
from training.rl.algorithms.optimisation import Optimisation
from training.rl.returns import vtrace
from training.rl.truncation import Truncating, Truncation

if TYPE_CHECKING:
    from training.rl.batch import Batch
    from training.rl.learner import LearnerState
    from training.rl.networks import Network


class Impala(Algorithm):
    """IMPALA: learns from data of slightly older policies too, so no actor has to wait."""

    kind: Literal["impala"] = "impala"
    learning_rate: float = setting(6e-4, "Learning rate", gt=0, le=1)
    entropy_coefficient: float = setting(0.01, "Entropy weight", ge=0, le=10, advanced=True)
    trace_decay: float = setting(0.95, "V-trace λ", ge=0, le=1, advanced=True)
    rho_limit: float = setting(1.0, "V-trace ρ limit", gt=0, le=10, advanced=True)
    c_limit: float = setting(1.0, "V-trace c limit", gt=0, le=10, advanced=True)
    advantage_trace: AdvantageTrace = "lambda"
    minibatch_size: int = setting(256, "Minibatch", ge=1, le=1_000_000, unit="samples")
    epochs: int = setting(1, "Passes over the data", ge=1, le=100, advanced=True)
    normalise_advantages: bool = setting(True, "Normalise advantages", advanced=True)

    def learn(
        self, state: LearnerState, batch: Batch, network: Network, progress: float, seed: int
    ) -> UpdateResult:
        """Update the state. V-trace is computed again before each pass, because it depends on the current policy and
        critic.
        """
        optimisation = Optimisation(state, network, self, progress, self.minibatch_of(batch.size))
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        rng = np.random.Generator(np.random.PCG64(seed))
        for _ in range(self.epochs):
            prepared = self.prepare(optimisation, batch, renormalised)
            device_arrays = optimisation.to_device(prepared.samples)
            for chosen in optimisation.minibatches_of(device_arrays, self.minibatch_size, rng):
                objective = self.objective_of(optimisation.arrays, chosen, progress)
                optimisation.step(chosen["observations"], chosen["actions"], objective)
        after = optimisation.next_state(renormalised)
        return self.result_of(optimisation, batch, prepared, after, self.epochs)

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
        log_ratio = optimisation.log_probs(batch, observations) - batch.log_probs
        ratios = np.exp(np.clip(log_ratio, -20.0, 20.0))
        targets, advantages = vtrace(
            ratios,
            self.rewards(batch, renormalised),
            values,
            optimisation.next_values(batch, values),
            batch.terminated,
            batch.ended,
            self.discount,
            self.trace_decay,
            self.rho_limit,
            self.c_limit,
            None if truncating is None else truncating.ratios(ratios),
            1.0 if self.advantage_trace == "full" else self.trace_decay,
        )
        if self.normalise_advantages:
            advantages = advantages / (advantages.std() + 1e-8)
        samples = {
            "observations": observations,
            "actions": batch.actions,
            "advantages": advantages,
            "targets": targets,
        }
        measured = {
            "approximate_kl": float((ratios - 1.0 - log_ratio).mean()),
            "clip_fraction": float((ratios > self.rho_limit).mean()),
        }
        return Slice(samples, values, advantages, targets, measured=measured)

    def objective_of(
        self,
        arrays: Any,
        chosen: dict[str, Array],
        progress: float,
        truncation: Truncation | None = None,
    ) -> Objective:
        # V-trace has truncated the advantages already.
        return partial(losses.actor_critic, chosen["advantages"], chosen["targets"], self.value_coefficient)

    @property
    def passes(self) -> int:
        return self.epochs
