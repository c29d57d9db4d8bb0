"""The bytes of a training's messages and the multiplications of a sample before any call runs, from the spec alone."""

from __future__ import annotations

from math import prod

import numpy as np

from training.calls.kind import Sizes
from training.engine.codec import encode
from training.rl.environments.expectations import Expectation, expectation_of
from training.rl.networks.layer import NamedLayer
from training.rl.spaces import Spaces
from training.spec import TrainingSpec

_HEADER_BYTES_AN_ARRAY = 55
_HEADER_BYTES = 260
_STATE_HEADER_BYTES, _STATE_NUMBERS_BYTES = 170, 24


def sizes_of(training: TrainingSpec, spaces: Spaces) -> Sizes:
    layout = training.network.layout(spaces)
    policy, value = _array_sizes(layout.actor), _array_sizes(layout.value)
    arrays = len(policy) + len(value) + (not spaces.discrete)
    seen = 0 if spaces.pictures or not training.algorithm.normalise_observations else spaces.observation_size
    copies = 4 if training.algorithm.follows_a_target else 3
    parameters = sum(policy) + sum(value)

    def of_learner(copies: int) -> int:
        numbers = 4 * copies * parameters + 16 * seen
        return numbers + _HEADER_BYTES + copies * arrays * _HEADER_BYTES_AN_ARRAY

    return Sizes(
        weights=4 * sum(policy) + 8 * seen + _HEADER_BYTES + len(policy) * _HEADER_BYTES_AN_ARRAY,
        learner=of_learner(copies),
        parameters=of_learner(copies - 2),
        gradient=4 * parameters + arrays * _HEADER_BYTES_AN_ARRAY,
        trajectory=_trajectory_bytes(training, spaces),
        state=_state_bytes(
            training, spaces, expectation_of(training.environment.id, pictures=spaces.pictures)
        ),
        policy_macs=training.network.policy_macs(spaces),
        learner_macs=training.network.learner_macs(spaces),
        pictures=spaces.pictures,
    )


def _array_sizes(layers: tuple[NamedLayer, ...]) -> list[int]:
    return [prod(shape) for named in layers for shape in named.layer.shapes]


def _observation_bytes(spaces: Spaces) -> int:
    return spaces.observation_size * (1 if spaces.pictures else 4)


def _trajectory_bytes(training: TrainingSpec, spaces: Spaces) -> int:
    """Return the bytes of a trajectory as `functions.rollout` encodes it: per step the observation, the action, and
    five numbers more.
    """
    rollout = training.rollout
    steps = rollout.steps_per_call * rollout.environments_per_actor
    action = 8 * len(spaces.action_counts) if spaces.discrete else 4 * len(spaces.action_low)
    numbers = 4 + 4 + 1 + 1 + 8
    empty = np.zeros(0, dtype=np.float32)
    header = len(encode({f"a name of usual length{at}": empty for at in range(12)}))
    last = rollout.environments_per_actor * _observation_bytes(spaces)
    return steps * (_observation_bytes(spaces) + action + numbers) + last + header


def _state_bytes(training: TrainingSpec, spaces: Spaces, expected: Expectation) -> int:
    seen = 0 if spaces.pictures else _observation_bytes(spaces)
    a_copy = expected.state_bytes + seen + _STATE_NUMBERS_BYTES
    return _STATE_HEADER_BYTES + training.rollout.environments_per_actor * a_copy
