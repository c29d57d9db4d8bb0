"""IMPACT (Luo et al. 2020): PPO's clipped step for asynchronous data, against a slowly following target policy.

With the behaviour μ, the target π_tgt (a copy, renewed every few updates) and w = clip(μ/π_tgt, 0, 2):

    r = w · π_θ / μ        L = −E[ min(r A, clip(r, 1−ε, 1+ε) A) ] + c_kl · KL(π_tgt ‖ π_θ) + …

Where w is not clipped, r is π_θ/π_tgt: the step is bounded around the target, however old the data is. Advantages
come from V-trace with π_tgt/μ. Learning from data that the target itself sampled is PPO. Data is used several times
from a circular buffer; the loop decides which data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from training.base_model import setting
from training.rl.algorithms import losses
from training.rl.algorithms.algorithm import AdvantageTrace, Algorithm, Slice, UpdateResult
from training.rl.algorithms.descent import Anchor, Array, Objective, Slopes
from training.rl.algorithms.optimisation import Optimisation
from training.rl.networks import Parameters
from training.rl.returns import vtrace
from training.rl.truncation import Truncating, Truncation

if TYPE_CHECKING:
    from training.rl.batch import Batch
    from training.rl.learner import LearnerState
    from training.rl.networks import Network

_WEIGHT_LIMIT = 2.0


class Impact(Algorithm):
    """IMPACT: PPO's clipping against a target network, for actors that never wait."""

    follows_a_target: ClassVar[bool] = True

    kind: Literal["impact"] = "impact"
    clip: float = setting(0.2, "Clip range ε", gt=0, le=1)
    epochs: int = setting(2, "Passes over the data", ge=1, le=100)
    minibatch_size: int = setting(256, "Minibatch", ge=1, le=1_000_000, unit="samples")
    trace_decay: float = setting(0.95, "V-trace λ", ge=0, le=1, advanced=True)
    rho_limit: float = setting(1.0, "V-trace ρ limit", gt=0, le=10, advanced=True)
    c_limit: float = setting(1.0, "V-trace c limit", gt=0, le=10, advanced=True)
    advantage_trace: AdvantageTrace = "lambda"
    target_every_updates: int = setting(
        1, "Renew the target every", ge=1, le=10_000, unit="updates", advanced=True
    )
    kl_coefficient: float = setting(0.0, "KL penalty to the target", ge=0, le=100, own=True, advanced=True)
    replay_batches: int = setting(
        4,
        "Replay buffer",
        "Updates' worth of data that may be used again.",
        ge=1,
        le=64,
        unit="batches",
        advanced=True,
    )
    replay_uses: int = setting(
        2,
        "Uses of each batch",
        "How often a batch may be learned from. 1: no replay.",
        ge=1,
        le=64,
        advanced=True,
    )
    normalise_advantages: bool = setting(True, "Normalise advantages", advanced=True)

    @property
    def surrogate_clip(self) -> float | None:
        return self.clip

    @property
    def replay(self) -> tuple[int, int]:
        return self.replay_batches, self.replay_uses

    def learn(
        self, state: LearnerState, batch: Batch, network: Network, progress: float, seed: int
    ) -> UpdateResult:
        optimisation = Optimisation(
            state, network, self, progress, self.minibatch_of(batch.size), self.anchor(state)
        )
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        prepared = self.prepare(optimisation, batch, renormalised)
        device_arrays = optimisation.to_device(prepared.samples)
        rng = np.random.Generator(np.random.PCG64(seed))
        for _ in range(self.epochs):
            for chosen in optimisation.minibatches_of(device_arrays, self.minibatch_size, rng):
                objective = self.objective_of(optimisation.arrays, chosen, progress)
                optimisation.step(chosen["observations"], chosen["actions"], objective)
        after = optimisation.next_state(renormalised)
        return self.result_of(
            optimisation, batch, prepared, self.end_round(after, after.version), self.epochs
        )

    def prepare(
        self,
        optimisation: Optimisation,
        batch: Batch,
        renormalised: LearnerState,
        start: Mapping[str, npt.NDArray[Any]] | None = None,
        truncating: Truncating | None = None,
    ) -> Slice:
        """Return the batch prepared. V-trace is computed once, before the first pass, because it depends on the
        target policy.
        """
        observations = optimisation.observations(batch)
        given = {"observations": observations, "actions": batch.actions, "log_probs": batch.log_probs}
        if start is not None:
            samples = {**given, **start}
            return Slice(samples, start["values"], start["advantages"], start["targets"])
        target_log_probs = optimisation.log_probs(batch, observations, renormalised.target_parameters)
        to_target = np.exp(np.clip(target_log_probs - batch.log_probs, -20.0, 20.0))
        values = optimisation.values(observations)
        truncated = None
        if truncating is not None:
            log_ratio = optimisation.log_probs(batch, observations) - batch.log_probs
            truncated = truncating.ratios(np.exp(np.clip(log_ratio, -20.0, 20.0)))
        targets, advantages = vtrace(
            to_target,
            self.rewards(batch, renormalised),
            values,
            optimisation.next_values(batch, values),
            batch.terminated,
            batch.ended,
            self.discount,
            self.trace_decay,
            self.rho_limit,
            self.c_limit,
            truncated,
            1.0 if self.advantage_trace == "full" else self.trace_decay,
        )
        weights = np.minimum(1.0 / to_target, _WEIGHT_LIMIT)
        arrays = {"weights": weights, "advantages": advantages, "targets": targets, "values": values}
        return Slice({**given, **arrays}, values, advantages, targets)

    def objective_of(
        self,
        arrays: Any,
        chosen: dict[str, Array],
        progress: float,
        truncation: Truncation | None = None,
    ) -> Objective:
        # V-trace has truncated the advantages already.
        return partial(self.slopes, arrays, chosen)

    def anchor(self, state: LearnerState, sampling: Sequence[Parameters] = ()) -> Anchor | None:
        return Anchor((state.target_parameters,), self.kl_coefficient) if self.kl_coefficient else None

    @property
    def kept_of_first_pass(self) -> tuple[str, ...]:
        return "weights", "advantages", "targets", "values"

    @property
    def passes(self) -> int:
        return self.epochs

    def end_round(self, state: LearnerState, rounds: int) -> LearnerState:
        if rounds % self.target_every_updates:
            return state
        return replace(state, target_parameters=state.parameters)

    def slopes(self, arrays: Any, chosen: dict[str, Array], log_probs: Array, values: Array) -> Slopes:
        """Return a minibatch's loss gradients, given the network's current log-probabilities and values."""
        log_change = log_probs - chosen["log_probs"]
        ratio = chosen["weights"] * arrays.exp(log_change)
        advantages = chosen["advantages"]
        n = len(advantages)
        if self.normalise_advantages and n > 1:
            advantages = losses.standardise(arrays, advantages)
        gains, rising = losses.clipped_gains(arrays, ratio, advantages, self.clip)
        value_loss, by_value = losses.squared_error(values, chosen["targets"])
        moved = ratio - 1.0
        measured = {
            "policy_loss": -losses.mean(gains),
            "value_loss": value_loss,
            # The logarithm of the ratio is computed as a sum, because the ratio itself may be 0 in single precision.
            "approximate_kl": losses.mean(moved - arrays.log(chosen["weights"]) - log_change),
            "clip_fraction": losses.mean(abs(moved) > self.clip),
        }
        return Slopes(rising * (-1.0 / n), by_value * self.value_coefficient, measured)
