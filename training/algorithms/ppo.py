"""Proximal policy optimisation with GAE (Schulman et al. 2017), with the details that decide whether it learns.

One update: values of all states under the current critic → advantages → several passes of shuffled minibatches over

    L = E[ max(−A r, −A clip(r, 1−ε, 1+ε)) ] + c_v · value loss − c_e · entropy,   r = π_θ(a|s) / π_behaviour(a|s)

with the gradient clipped by its global norm and one Adam step a minibatch. For data that is some versions old, the
decoupled objective (Hilton et al. 2021) clips around the policy at the start of the update instead, and weighs with
how far that one is from the behaviour:  L = E[ −π_prox/π_behaviour · min(u A, clip(u) A) ],  u = π_θ/π_prox.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from training.algorithms.algorithm import ADVANCED, Algorithm, Floats, Learned, explained_variance
from training.returns import generalised_advantages

if TYPE_CHECKING:
    import torch

    from training.algorithms.optimisation import Optimisation
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

    def learn(
        self, state: LearnerState, batch: Batch, network: MLP | CNN, progress: float, seed: int
    ) -> Learned:
        """Several passes over `batch`. Observations are normalised as actors of the state's version did, so ratios of
        fresh data start at 1 up to rounding; what the batch adds to the statistics counts from the next version on.
        """
        from training.algorithms.optimisation import Optimisation
        from training.reports import UpdateReport

        optimisation = Optimisation(state, network, self, progress)
        grown = state.having_seen(batch.observations, batch.discounted_returns)
        observations = optimisation.observations(batch)
        rewards = self.rewards(batch, grown)
        values, advantages = self._advantages(optimisation, batch, observations, rewards)
        targets = advantages + values
        samples = self._samples(optimisation, batch, observations)
        rng = np.random.Generator(np.random.PCG64(seed))
        clip = self.clip * (1.0 - progress) if self.clip_decay else self.clip
        passes = 0
        for passes in range(1, self.epochs + 1):
            if passes > 1 and self.recompute_advantages:
                values, advantages = self._advantages(optimisation, batch, observations, rewards)
                targets = advantages + values
            self._pass(optimisation, samples, advantages, values, targets, clip, rng)
            if self.target_kl is not None and optimisation.last("approximate_kl") > 1.5 * self.target_kl:
                break
        means = optimisation.means()
        grown = replace(grown, kl_coefficient=self._next_kl_coefficient(state, means))
        report = UpdateReport(
            **{name: means[name] for name in UpdateReport.model_fields if name in means},
            explained_variance=explained_variance(targets, values),
            learning_rate=optimisation.learning_rate,
            device=optimisation.device.type,
        )
        return Learned(optimisation.next_state(grown), report, optimisation.minibatches, batch.size * passes)

    def _advantages(
        self, optimisation: Optimisation, batch: Batch, observations: Floats, rewards: Floats
    ) -> tuple[Floats, Floats]:
        """Values of all states, and GAE on them."""
        values = optimisation.values(observations)
        following = optimisation.next_values(batch, values)
        advantages = generalised_advantages(
            rewards, values, following, batch.terminated, batch.ended, self.discount, self.trace_decay
        )
        return values, advantages

    def _samples(
        self, optimisation: Optimisation, batch: Batch, observations: Floats
    ) -> dict[str, torch.Tensor]:
        """The batch flattened to [sample, …] tensors, with the policy at the start of the update where it is needed."""
        import torch

        n = batch.size
        samples = {
            "observations": optimisation.tensor(observations.reshape(n, *observations.shape[2:])),
            "actions": optimisation.tensor(batch.actions.reshape(n, *batch.actions.shape[2:])),
            "log_probs": optimisation.tensor(batch.log_probs.reshape(n)),
        }
        if self.objective == "decoupled" or self.kl_coefficient:
            with torch.no_grad():
                outputs = optimisation.network.policy(optimisation.parameters, samples["observations"])
                start = optimisation.distribution(outputs)
                samples["start_log_probs"] = start.log_prob(samples["actions"])
                samples["start_outputs"] = outputs
        return samples

    def _pass(
        self,
        optimisation: Optimisation,
        samples: dict[str, torch.Tensor],
        advantages: Floats,
        values: Floats,
        targets: Floats,
        clip: float,
        rng: np.random.Generator,
    ) -> None:
        """One shuffled pass: the order is drawn once, so that minibatches are views of shuffled copies."""
        import torch

        n = advantages.size
        order = torch.from_numpy(rng.permutation(n)).to(optimisation.device)
        estimates = {"advantages": advantages, "values": values, "targets": targets}
        shuffled = {name: optimisation.tensor(array.reshape(n))[order] for name, array in estimates.items()}
        shuffled |= {name: tensor[order] for name, tensor in samples.items()}
        for begin in range(0, n, self.minibatch_size):
            part = slice(begin, begin + self.minibatch_size)
            self._step(optimisation, {name: tensor[part] for name, tensor in shuffled.items()}, clip)

    def _step(self, optimisation: Optimisation, chosen: dict[str, torch.Tensor], clip: float) -> None:
        import torch

        outputs, values = optimisation.network.policy_and_value(
            optimisation.parameters, chosen["observations"]
        )
        distribution = optimisation.distribution(outputs)
        log_probs = distribution.log_prob(chosen["actions"])
        reference = chosen["start_log_probs"] if self.objective == "decoupled" else chosen["log_probs"]
        log_ratio = log_probs - reference
        ratio = log_ratio.exp()
        advantages = chosen["advantages"]
        if self.normalise_advantages and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        surrogate = torch.minimum(advantages * ratio, advantages * ratio.clamp(1.0 - clip, 1.0 + clip))
        if self.objective == "decoupled":
            surrogate = surrogate * (reference - chosen["log_probs"]).exp().clamp(max=_WEIGHT_LIMIT)
        policy_loss = -surrogate.mean()
        value_loss = self._value_loss(values, chosen)
        entropy = distribution.entropy()
        loss = policy_loss + self.value_coefficient * value_loss - self.entropy_coefficient * entropy
        with torch.no_grad():
            # k3 of Schulman's note on approximating KL: unbiased, never negative, low variance.
            kl = ((ratio - 1.0) - log_ratio).mean()
            outside = ((ratio - 1.0).abs() > clip).float().mean()
        measured = {"approximate_kl": kl, "clip_fraction": outside, "entropy": entropy}
        if self.kl_coefficient:
            start = optimisation.distribution_at_start(chosen["start_outputs"])
            divergence = distribution.divergence_from(start).mean()
            loss = loss + optimisation.kl_coefficient * divergence
            measured["divergence"] = divergence
        optimisation.step(loss, policy_loss=policy_loss, value_loss=value_loss, **measured)

    def _value_loss(self, values: torch.Tensor, chosen: dict[str, torch.Tensor]) -> torch.Tensor:
        import torch

        error = (values - chosen["targets"]) ** 2
        if self.value_clip is not None:
            near = chosen["values"] + (values - chosen["values"]).clamp(-self.value_clip, self.value_clip)
            error = torch.maximum(error, (near - chosen["targets"]) ** 2)
        loss: torch.Tensor = 0.5 * error.mean()
        return loss

    def _next_kl_coefficient(self, state: LearnerState, means: dict[str, float]) -> float:
        """Half as much again where the policy moved over twice too far, half as much where it barely moved."""
        if not self.kl_coefficient:
            return state.kl_coefficient
        if means["divergence"] > 2.0 * self.kl_target:
            return state.kl_coefficient * 1.5
        return (
            state.kl_coefficient * 0.5 if means["divergence"] < 0.5 * self.kl_target else state.kl_coefficient
        )
