"""The policy gradient as Siren's slides print it: one step along E[∇ log π(a|s) q(s, a)], without a critic.

q is the discounted return from the action on. Standardised over the batch, its scale does not matter.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from training.rl.algorithms import losses
from training.rl.algorithms.algorithm import Algorithm, UpdateResult, collect_update_samples
from training.rl.algorithms.optimisation import Optimisation
from training.rl.returns import generalised_advantages

if TYPE_CHECKING:
    from training.rl.batch import Batch
    from training.rl.learner import LearnerState
    from training.rl.networks import Network


class PolicyGradient(Algorithm):
    """REINFORCE: one gradient step on whole episodes."""

    kind: Literal["policy_gradient"] = "policy_gradient"
    standardise: bool = True

    def learn(
        self, state: LearnerState, batch: Batch, network: Network, progress: float, seed: int
    ) -> UpdateResult:
        optimisation = Optimisation(state, network, self, progress, batch.size)
        observations = optimisation.observations(batch)
        nothing = np.zeros_like(batch.rewards)
        q = generalised_advantages(
            self.rewards(batch, state), nothing, nothing, batch.terminated, batch.ended, self.discount, 1.0
        )
        advantages = (q - q.mean()) / (q.std() + 1e-8) if self.standardise else q
        arrays = optimisation.to_device(
            {"observations": observations, "actions": batch.actions, "advantages": advantages}
        )
        objective = partial(losses.actor_critic, arrays["advantages"], arrays["advantages"], 0.0)
        optimisation.step(arrays["observations"], arrays["actions"], objective)
        report = optimisation.report(0.0, approximate_kl=0.0, clip_fraction=0.0)
        samples = collect_update_samples(observations, batch, advantages, advantages)
        return UpdateResult(
            optimisation.next_state(state), report, optimisation.minibatches, batch.size, samples
        )
