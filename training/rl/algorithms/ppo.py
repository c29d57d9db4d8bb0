"""Proximal policy optimisation with GAE (Schulman et al. 2017), with the details that decide whether it learns.

One update computes the values of all states under the current critic, then advantages, then makes several passes of
shuffled minibatches over

    L = E[ max(−A r, −A clip(r, 1−ε, 1+ε)) ] + c_v · value loss − c_e · entropy,   r = π_θ(a|s) / π_behaviour(a|s)

with the gradient clipped by its global norm and one Adam step a minibatch. For data that is some versions old, the
decoupled objective (Hilton et al. 2021) clips around π_prox, the policy at the start of the update, instead. It
weights by the ratio of π_prox to the behaviour: L = E[ −π_prox/π_behaviour · min(u A, clip(u) A) ], u = π_θ/π_prox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from training.base_model import setting
from training.rl.algorithms import losses
from training.rl.algorithms.algorithm import Algorithm, Floats, Slice, UpdateResult
from training.rl.algorithms.descent import Anchor, Array, Objective, Slopes
from training.rl.algorithms.optimisation import Optimisation
from training.rl.networks import Parameters
from training.rl.returns import generalised_advantages
from training.rl.truncation import Truncating, Truncation

if TYPE_CHECKING:
    from training.rl.batch import Batch
    from training.rl.learner import LearnerState
    from training.rl.networks import Network

_WEIGHT_LIMIT = 2.0


class PPO(Algorithm):
    """PPO: learns from each round's data in a few clipped passes."""

    kind: Literal["ppo"] = "ppo"
    trace_decay: float = setting(0.95, "GAE λ", ge=0, le=1)
    clip: float = setting(0.2, "Clip range ε", gt=0, le=1)
    clip_decay: bool = setting(False, "Decay the clip range", advanced=True)
    epochs: int = setting(10, "Passes over the data", ge=1, le=100)
    minibatch_size: int = setting(256, "Minibatch", ge=1, le=1_000_000, unit="samples")
    value_clip: float | None = setting(
        None, "Value clip", "Empty: values are not clipped.", gt=0, le=1000, advanced=True
    )
    value_error: Literal["half_square", "clamped_square"] = setting(
        "half_square",
        "Value error",
        "Half square: PPO2's, which clips how far a value moves. Clamped square: RLlib's, the whole square,"
        " which counts as the value clip where it is larger.",
        exclude_if=lambda value: value == "half_square",
        advanced=True,
    )
    normalise_advantages: bool = setting(True, "Normalise advantages", advanced=True)
    recompute_advantages: bool = setting(
        False, "Recompute advantages each pass", "With the critic as it is by then.", advanced=True
    )
    target_kl: float | None = setting(
        None,
        "KL limit",
        "Stop an update's passes early beyond 1.5 times this. Empty: never.",
        gt=0,
        le=100,
        advanced=True,
    )
    kl_coefficient: float = setting(
        0.0,
        "KL penalty",
        "First weight of an adaptive penalty that aims at the KL target; 0: none.",
        ge=0,
        le=100,
        advanced=True,
    )
    kl_target: float = setting(0.01, "KL target of the penalty", gt=0, le=10, advanced=True)
    objective: Literal["clipped", "decoupled"] = setting(
        "clipped", "Objective", "Decoupled: for data that may be some versions old.", advanced=True
    )

    @property
    def initial_kl_coefficient(self) -> float:
        return self.kl_coefficient

    @property
    def surrogate_clip(self) -> float | None:
        return self.clip

    def learn(
        self, state: LearnerState, batch: Batch, network: Network, progress: float, seed: int
    ) -> UpdateResult:
        """Update the state with several passes over `batch`. Observations are normalised as this version's actors
        normalised them, so ratios of fresh data start at 1 up to rounding. The batch's own statistics count from the
        next version on.
        """
        optimisation = Optimisation(
            state, network, self, progress, self.minibatch_of(batch.size), self.anchor(state)
        )
        renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
        prepared = self.prepare(optimisation, batch, renormalised)
        device_arrays = optimisation.to_device(prepared.samples)
        rng = np.random.Generator(np.random.PCG64(seed))
        passes = 0
        for passes in range(1, self.epochs + 1):
            if passes > 1 and self.recompute_advantages:
                start = {name: prepared.samples[name] for name in self.kept_of_first_pass}
                prepared = self.prepare(optimisation, batch, renormalised, start)
                device_arrays = optimisation.to_device(prepared.samples)
            for chosen in optimisation.minibatches_of(device_arrays, self.minibatch_size, rng):
                objective = self.objective_of(optimisation.arrays, chosen, progress)
                optimisation.step(chosen["observations"], chosen["actions"], objective)
            if self.target_kl is not None and self.is_enough(optimisation.last("approximate_kl")):
                break
        divergence = optimisation.means().get("divergence")
        after = optimisation.next_state(self._with_next_kl_coefficient(renormalised, divergence))
        return self.result_of(optimisation, batch, prepared, after, passes)

    def prepare(
        self,
        optimisation: Optimisation,
        batch: Batch,
        renormalised: LearnerState,
        start: Mapping[str, npt.NDArray[Any]] | None = None,
        truncating: Truncating | None = None,
    ) -> Slice:
        observations = optimisation.observations(batch)
        samples = {"observations": observations, "actions": batch.actions, "log_probs": batch.log_probs}
        if start is None or self.recompute_advantages:
            rewards = self.rewards(batch, renormalised)
            values, advantages = self._advantages(optimisation, batch, observations, rewards)
        else:
            values, advantages = start["values"], start["advantages"]
        if self.objective == "decoupled":
            samples["start_log_probs"] = (
                optimisation.log_probs(batch, observations) if start is None else start["start_log_probs"]
            )
        targets = advantages + values
        samples |= {"advantages": advantages, "values": values, "targets": targets}
        return Slice(samples, values, advantages, targets)

    def objective_of(
        self,
        arrays: Any,
        chosen: dict[str, Array],
        progress: float,
        truncation: Truncation | None = None,
    ) -> Objective:
        clip = self.clip * (1.0 - progress) if self.clip_decay else self.clip
        return partial(self.slopes, arrays, chosen, clip, truncation=truncation)

    def anchor(self, state: LearnerState, sampling: Sequence[Parameters] = ()) -> Anchor | None:
        if not self.anchors_to_sampling:
            return None
        return Anchor(tuple(sampling) or (state.parameters,), state.kl_coefficient)

    @property
    def anchors_to_sampling(self) -> bool:
        return self.kl_coefficient > 0.0

    @property
    def kept_of_first_pass(self) -> tuple[str, ...]:
        advantages = () if self.recompute_advantages else ("advantages", "values")
        return (*advantages, "start_log_probs") if self.objective == "decoupled" else advantages

    @property
    def passes(self) -> int:
        return self.epochs

    def is_enough(self, approximate_kl: float) -> bool:
        return self.target_kl is not None and approximate_kl > 1.5 * self.target_kl

    def end_round(self, state: LearnerState, rounds: int) -> LearnerState:
        return self._with_next_kl_coefficient(state, state.round_sums.mean_divergence)

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
        self,
        arrays: Any,
        chosen: dict[str, Array],
        clip: float,
        log_probs: Array,
        values: Array,
        *,
        truncation: Truncation | None = None,
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
        if truncation is not None:
            own = arrays.exp(log_probs - behaviour) if decoupled else ratio
            gains, rising = losses.truncated_gains(
                arrays, truncation, own, chosen.get("others"), ratio, advantages, clip
            )
        else:
            gains, rising = losses.clipped_gains(arrays, ratio, advantages, clip)
        if decoupled and truncation is None:
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

    def _with_next_kl_coefficient(self, state: LearnerState, divergence: float | None) -> LearnerState:
        """Return `state` with the next coefficient: 1.5 times as much if the divergence is over twice its target, half
        if it is under half.
        """
        if not self.kl_coefficient or divergence is None:
            return state
        if divergence > 2.0 * self.kl_target:
            return replace(state, kl_coefficient=state.kl_coefficient * 1.5)
        if divergence < 0.5 * self.kl_target:
            return replace(state, kl_coefficient=state.kl_coefficient * 0.5)
        return state
