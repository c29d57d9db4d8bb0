"""Learners' states and batches made up from a seed, so that a test needs no environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from training.rl.batch import Batch
from training.rl.learner import LearnerState
from training.rl.networks import MLP
from training.rl.networks.inference import NumpyPolicy
from training.rl.spaces import Spaces

STEPS, COPIES = 6, 4
SPACES = {
    "discrete": Spaces((4,), (3,)),
    "several discrete": Spaces((5,), (3, 2, 4)),
    "continuous": Spaces((7,), (), (-1.0,) * 3, (1.0,) * 3),
}


class _TracedMLP(MLP):
    has_closed_form: ClassVar[bool] = False


def by_autograd(network: Any) -> Any:
    """The same network, as one whose gradients are not known in closed form."""
    return _TracedMLP.model_construct(**dict(network)) if network.has_closed_form else network


def traced(spec: Any) -> Any:
    """The same training, with gradients by autograd."""
    return spec.model_copy(update={"network": by_autograd(spec.network)})


def state_away_from_zero(algorithm: Any, network: Any, spaces: Any, seed: int) -> LearnerState:
    """Weights, moments and normalisers as in the midst of a run."""
    rng = np.random.default_rng(seed)
    state = algorithm.initial_state(network, spaces, seed)

    def noise(scale: float) -> dict[str, Any]:
        return {
            name: (scale * rng.standard_normal(array.shape)).astype(np.float32)
            for name, array in state.parameters.items()
        }

    parameters = {name: state.parameters[name] + step for name, step in noise(0.1).items()}
    state = replace(
        state,
        parameters=parameters,
        first_moments=noise(0.01),
        second_moments={name: array**2 for name, array in noise(0.1).items()},
        optimiser_steps=int(rng.integers(0, 50)),
        target_parameters={name: parameters[name] + step for name, step in noise(0.02).items()}
        if state.target_parameters
        else {},
    )
    seen = rng.standard_normal((100, spaces.observation_size)) * 2 + 1
    return state.with_moments_of(seen.astype(np.float32), rng.standard_normal(10))


def batch_of(state: LearnerState, network: Any, seed: int, *, stray: float = 0.3) -> Batch:
    """Samples of the state's policy, with log-probabilities that stray from its own as those of old data do."""
    rng = np.random.default_rng(seed)
    steps, copies, spaces = STEPS, COPIES, state.spaces
    n = steps * copies
    observations = rng.standard_normal((n, *spaces.observation_shape)).astype(np.float32)
    policy = NumpyPolicy(state.actor_weights(network))
    actions, log_probs = policy.sample(observations, policy.draw_noise(rng, 1, n)[0])
    truncated = np.zeros((steps, copies), dtype=bool)
    truncated[2, 1] = True
    terminated = np.zeros((steps, copies), dtype=bool)
    terminated[3, 2] = True
    strayed = log_probs + stray * rng.standard_normal(n)
    return Batch(
        versions=np.zeros(copies, dtype=np.int64),
        observations=observations.reshape(steps, copies, *spaces.observation_shape),
        actions=actions.reshape(steps, copies, *actions.shape[1:]),
        log_probs=strayed.astype(np.float32).reshape(steps, copies),
        rewards=rng.standard_normal((steps, copies)).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        discounted_returns=rng.standard_normal((steps, copies)),
        last_observations=rng.standard_normal((copies, *spaces.observation_shape)).astype(np.float32),
        final_index=np.array([[2, 1], [3, 2]], dtype=np.int32),
        final_observations=rng.standard_normal((2, *spaces.observation_shape)).astype(np.float32),
        episode_returns=np.zeros(2),
        episode_lengths=np.zeros(2, dtype=np.int32),
    )
