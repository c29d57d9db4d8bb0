"""Proximal policy optimisation with GAE (Schulman et al. 2017), with the details that decide whether it learns.

One update: values of all states under the current critic → advantages → several passes of shuffled minibatches over

    L = E[ max(−A r, −A clip(r, 1−ε, 1+ε)) ] + c_v · value loss − c_e · entropy,   r = π_θ(a|s) / π_behaviour(a|s)

with the gradient clipped by its global norm and one Adam step a minibatch. The mathematics is a function of the
learner's state and the batch; nothing is kept between calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from training.frozen import Frozen
from training.inference import normalised
from training.returns import generalised_advantages

if TYPE_CHECKING:
    from training.batch import Batch
    from training.learner import LearnerState
    from training.messages import UpdateReport
    from training.spec import NetworkSpec

REWARD_CLIP = 10.0
_ADVANCED: dict[str, Any] = {"advanced": True}


class PPO(Frozen):
    """PPO: learns from each round's data in a few clipped passes."""

    kind: Literal["ppo"] = "ppo"
    learning_rate: float = Field(3e-4, gt=0, le=1, title="Learning rate")
    learning_rate_decay: bool = Field(
        True, title="Decay the learning rate", description="In a straight line to zero over the whole run."
    )
    discount: float = Field(0.99, ge=0, le=1, title="Discount γ")
    trace_decay: float = Field(0.95, ge=0, le=1, title="GAE λ")
    clip: float = Field(0.2, gt=0, le=1, title="Clip range ε")
    clip_decay: bool = Field(False, title="Decay the clip range", json_schema_extra=_ADVANCED)
    epochs: int = Field(10, ge=1, le=100, title="Passes over the data")
    minibatch_size: int = Field(
        256, ge=1, le=1_000_000, title="Minibatch", json_schema_extra={"unit": "samples"}
    )
    value_coefficient: float = Field(
        0.5, ge=0, le=100, title="Value loss weight", json_schema_extra=_ADVANCED
    )
    value_clip: float | None = Field(
        None,
        gt=0,
        le=1000,
        title="Value clip",
        description="Empty: values are not clipped.",
        json_schema_extra=_ADVANCED,
    )
    entropy_coefficient: float = Field(0.0, ge=0, le=10, title="Entropy weight", json_schema_extra=_ADVANCED)
    max_gradient_norm: float = Field(
        0.5, gt=0, le=1e6, title="Largest gradient norm", json_schema_extra=_ADVANCED
    )
    normalise_advantages: bool = Field(True, title="Normalise advantages", json_schema_extra=_ADVANCED)
    target_kl: float | None = Field(
        None,
        gt=0,
        le=100,
        title="KL limit",
        description="Stop an update's passes early beyond 1.5 times this. Empty: never.",
        json_schema_extra=_ADVANCED,
    )
    normalise_observations: bool = Field(False, title="Normalise observations")
    normalise_rewards: bool = Field(
        False, title="Scale rewards", description="By the running deviation of discounted returns."
    )
    adam_epsilon: float = Field(1e-5, gt=0, le=1, title="Adam ε", json_schema_extra=_ADVANCED)

    def learn(
        self, state: LearnerState, batch: Batch, network: NetworkSpec, progress: float, seed: int
    ) -> tuple[LearnerState, UpdateReport, int]:
        """The next state, what was measured, and the number of minibatches it took.

        Observations are normalised as the actors of `state.version` did, so ratios start at exactly 1 up to rounding;
        what the round adds to the statistics counts from the next version on.
        """
        from training.algorithms.optimiser import Optimisation

        mean, scale = state.normaliser()
        observations = normalised(batch.observations, mean, scale)
        grown = state.having_seen(batch.observations.reshape(batch.size, -1), batch.discounted_returns)
        optimisation = Optimisation(
            state, network, self._rate(progress), self.adam_epsilon, self.max_gradient_norm
        )
        values = optimisation.values(observations)
        next_values = self._next_values(batch, values, optimisation, mean, scale)
        advantages = generalised_advantages(
            self._scaled_rewards(batch, grown),
            values,
            next_values,
            batch.terminated,
            batch.terminated | batch.truncated,
            self.discount,
            self.trace_decay,
        )
        targets = advantages + values
        report, minibatches = self._passes(
            optimisation, observations, batch, advantages, values, targets, progress, seed
        )
        return replace(optimisation.next_state(grown), version=state.version + 1), report, minibatches

    def _rate(self, progress: float) -> float:
        return self.learning_rate * (1.0 - progress) if self.learning_rate_decay else self.learning_rate

    def _scaled_rewards(self, batch: Batch, grown: LearnerState) -> np.ndarray:
        if grown.return_moments is None:
            return batch.rewards
        scaled = batch.rewards * grown.return_moments.scale().astype(np.float32)
        return np.clip(scaled, -REWARD_CLIP, REWARD_CLIP)

    def _next_values(
        self,
        batch: Batch,
        values: np.ndarray,
        optimisation: Any,
        mean: np.ndarray | None,
        scale: np.ndarray | None,
    ) -> np.ndarray:
        """V of the state that really followed each step: also of the one that a time limit cut off."""
        last = optimisation.values(normalised(batch.last_observations, mean, scale))
        following = np.concatenate([values[1:], last[None]], axis=0)
        if len(batch.final_index):
            steps, columns = batch.final_index[:, 0], batch.final_index[:, 1]
            following[steps, columns] = optimisation.values(normalised(batch.final_observations, mean, scale))
        return following

    def _passes(
        self,
        optimisation: Any,
        observations: np.ndarray,
        batch: Batch,
        advantages: np.ndarray,
        values: np.ndarray,
        targets: np.ndarray,
        progress: float,
        seed: int,
    ) -> tuple[UpdateReport, int]:
        """Shuffled minibatches, several times over all samples, until the passes are done or the KL limit is hit."""
        from training.algorithms.surrogate import PPOLoss
        from training.messages import UpdateReport

        n = batch.size
        loss = PPOLoss(
            clip=self.clip * (1.0 - progress) if self.clip_decay else self.clip,
            value_clip=self.value_clip,
            value_coefficient=self.value_coefficient,
            entropy_coefficient=self.entropy_coefficient,
            normalise_advantages=self.normalise_advantages,
            observations=observations.reshape(n, -1),
            actions=batch.actions.reshape(n, *batch.actions.shape[2:]),
            log_probs=batch.log_probs.reshape(n),
            advantages=advantages.reshape(n),
            values=values.reshape(n),
            targets=targets.reshape(n),
        )
        rng = np.random.Generator(np.random.PCG64(seed))
        minibatches = 0
        for _ in range(self.epochs):
            order = rng.permutation(n)
            for begin in range(0, n, self.minibatch_size):
                optimisation.step(loss, order[begin : begin + self.minibatch_size])
                minibatches += 1
            if self.target_kl is not None and loss.last_approximate_kl() > 1.5 * self.target_kl:
                break
        variance = float(targets.var())
        explained = 1.0 - float((targets - values).var()) / variance if variance > 0 else 0.0
        measured = loss.means()
        return UpdateReport(
            **measured,
            explained_variance=explained,
            gradient_norm=optimisation.mean_gradient_norm(),
            learning_rate=optimisation.learning_rate,
        ), minibatches
