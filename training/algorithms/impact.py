"""IMPACT (Luo et al. 2020): PPO's clipped step for asynchronous data, against a slowly following target policy.

With the behaviour μ, the target π_tgt (a copy, renewed every few updates) and w = clip(μ/π_tgt, 0, 2):

    r = w · π_θ / μ        L = −E[ min(r A, clip(r, 1−ε, 1+ε) A) ] + c_kl · KL(π_tgt ‖ π_θ) + …

Where w is not clipped r is π_θ/π_tgt: the step is bounded around the target, however old the data is. Advantages come
from V-trace with π_tgt/μ. Data is used several times from a circular buffer; which data is the loop's decision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from training.algorithms.algorithm import ADVANCED, Algorithm, Learned, explained_variance
from training.returns import vtrace

if TYPE_CHECKING:
    from training.architectures import CNN, MLP
    from training.batch import Batch
    from training.learner import LearnerState

_WEIGHT_LIMIT = 2.0


class Impact(Algorithm):
    """IMPACT: PPO's clipping against a target network; made for actors that never wait."""

    follows_a_target: ClassVar[bool] = True

    kind: Literal["impact"] = "impact"
    clip: float = Field(0.2, gt=0, le=1, title="Clip range ε")
    epochs: int = Field(2, ge=1, le=100, title="Passes over the data")
    minibatch_size: int = Field(
        256, ge=1, le=1_000_000, title="Minibatch", json_schema_extra={"unit": "samples"}
    )
    trace_decay: float = Field(0.95, ge=0, le=1, title="V-trace λ", json_schema_extra=ADVANCED)
    rho_limit: float = Field(1.0, gt=0, le=10, title="V-trace ρ limit", json_schema_extra=ADVANCED)
    c_limit: float = Field(1.0, gt=0, le=10, title="V-trace c limit", json_schema_extra=ADVANCED)
    target_every_updates: int = Field(
        1,
        ge=1,
        le=10_000,
        title="Renew the target every",
        json_schema_extra={"advanced": True, "unit": "updates"},
    )
    kl_coefficient: float = Field(
        0.0, ge=0, le=100, title="KL penalty to the target", json_schema_extra=ADVANCED
    )
    replay_batches: int = Field(
        4,
        ge=1,
        le=64,
        title="Replay buffer",
        description="Updates' worth of data that may be used again.",
        json_schema_extra={"advanced": True, "unit": "batches"},
    )
    replay_uses: int = Field(
        2,
        ge=1,
        le=64,
        title="Uses of each batch",
        description="How often a batch may be learned from. 1: no replay.",
        json_schema_extra=ADVANCED,
    )
    normalise_advantages: bool = Field(True, title="Normalise advantages", json_schema_extra=ADVANCED)

    @property
    def replay(self) -> tuple[int, int]:
        return self.replay_batches, self.replay_uses

    def learn(
        self, state: LearnerState, batch: Batch, network: MLP | CNN, progress: float, seed: int
    ) -> Learned:
        import torch

        from training.algorithms.optimisation import Optimisation
        from training.algorithms.trajectories import log_probs_under, shuffled_parts
        from training.distributions import Distribution
        from training.reports import UpdateReport

        optimisation = Optimisation(state, network, self, progress)
        grown = state.having_seen(batch.observations, batch.discounted_returns)
        observations = optimisation.observations(batch)
        target = {name: optimisation.tensor(array) for name, array in state.target_parameters.items()}
        target_log_probs = log_probs_under(optimisation, target, batch, observations)
        to_target = np.exp(np.clip(target_log_probs - batch.log_probs, -20.0, 20.0))
        values = optimisation.values(observations)
        targets, advantages = vtrace(
            to_target,
            self.rewards(batch, grown),
            values,
            optimisation.next_values(batch, values),
            batch.terminated,
            batch.ended,
            self.discount,
            self.trace_decay,
            self.rho_limit,
            self.c_limit,
        )
        n = batch.size
        seen = optimisation.tensor(observations.reshape(n, *observations.shape[2:]))
        actions = optimisation.tensor(batch.actions.reshape(n, *batch.actions.shape[2:]))
        behaviour = optimisation.tensor(batch.log_probs.reshape(n))
        weights = optimisation.tensor(
            np.minimum(1.0 / to_target, _WEIGHT_LIMIT).reshape(n).astype(np.float32)
        )
        gains = optimisation.tensor(advantages.reshape(n).astype(np.float32))
        goals = optimisation.tensor(targets.reshape(n).astype(np.float32))
        rng = np.random.Generator(np.random.PCG64(seed))
        for _ in range(self.epochs):
            for part in shuffled_parts(n, self.minibatch_size, rng):
                outputs, critic = optimisation.network.policy_and_value(optimisation.parameters, seen[part])
                distribution = optimisation.distribution(outputs)
                log_ratio = distribution.log_prob(actions[part]) - behaviour[part]
                ratio = weights[part] * log_ratio.exp()
                gain = gains[part]
                if self.normalise_advantages and len(gain) > 1:
                    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.minimum(
                    ratio * gain, ratio.clamp(1.0 - self.clip, 1.0 + self.clip) * gain
                ).mean()
                value_loss = 0.5 * ((critic - goals[part]) ** 2).mean()
                entropy = distribution.entropy()
                loss = policy_loss + self.value_coefficient * value_loss - self.entropy_coefficient * entropy
                if self.kl_coefficient:
                    with torch.no_grad():
                        theirs = Distribution.of(
                            optimisation.network.policy(target, seen[part]), target, state.spaces
                        )
                    loss = loss + self.kl_coefficient * distribution.divergence_from(theirs).mean()
                with torch.no_grad():
                    kl = ((ratio - 1.0) - torch.log(ratio)).mean()
                    outside = ((ratio - 1.0).abs() > self.clip).float().mean()
                optimisation.step(
                    loss,
                    policy_loss=policy_loss,
                    value_loss=value_loss,
                    entropy=entropy,
                    approximate_kl=kl,
                    clip_fraction=outside,
                )
        report = UpdateReport(
            **optimisation.means(),
            explained_variance=explained_variance(targets, values),
            learning_rate=optimisation.learning_rate,
            device=optimisation.device.type,
        )
        after = optimisation.next_state(grown)
        if after.version % self.target_every_updates == 0:
            after = replace(after, target_parameters=after.parameters)
        return Learned(after, report, optimisation.minibatches, n * self.epochs)
