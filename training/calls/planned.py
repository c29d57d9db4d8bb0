"""Calls before they run: the bytes of their messages and the multiplications of a sample, from the spec alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from training.engine.codec import encode
from training.rl.environments.expectations import Expectation, expectation_of
from training.rl.networks.layer import NamedLayer
from training.rl.spaces import Spaces
from training.spec import TrainingSpec

_HEADER_BYTES_AN_ARRAY = 55
_HEADER_BYTES = 260
_STATE_HEADER_BYTES, _STATE_NUMBERS_BYTES = 170, 24


@dataclass(frozen=True)
class Sizes:
    """Bytes of messages, and multiplications of one sample. A trajectory and a state are those of one call.
    `parameters` are the learner's without its optimiser, `gradient` is as large as all weights.
    """

    weights: int
    learner: int
    parameters: int
    gradient: int
    trajectory: int
    state: int
    policy_macs: int
    learner_macs: int
    pictures: bool


@dataclass(frozen=True)
class PlannedCall:
    """A call that has not run, and how much of the job falls to it.

    `trajectories` and other learners' `policies` come in, `gradients` become a version, `trials` of `steps` in
    all are made. `sharing` calls judge the held-out rows together; 0: as few as do. `fewer`: each trajectory stands
    for this many, where a small fleet represents one that is as many times larger and whose lines are as many times
    faster.
    """

    training: Any
    sizes: Sizes
    contributions: int = 0
    policies: int = 0
    gradients: int = 0
    trials: int = 0
    steps: int = 0
    sharing: int = 0
    fewer: int = 1


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
