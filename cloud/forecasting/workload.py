"""A job's calls before it runs: their work and their bytes, by arithmetic from the spec."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from cloud.billing.work import Work
from training.architectures import CNN, Convolution, Layer, learner_macs, policy_macs, towers
from training.codec import encode
from training.environments.catalogue import ENTRIES
from training.environments.expectations import Expectation, expectation_of
from training.environments.spaces import Spaces
from training.loops.evaluation import CALLS_AT_MOST
from training.spec import TrainingSpec

_HEADER_BYTES_AN_ARRAY = 55
_HEADER_BYTES = 260
_UPDATE_REPORT_BYTES = 500
_LEARNER_S = 900.0
_STATE_HEADER_BYTES, _STATE_NUMBERS_BYTES = 170, 24
_GUESSED_NUMBERS, _GUESSED_ACTIONS = 64, 8
_GUESSED_BUTTONS = 18


def spaces_of(training: TrainingSpec) -> tuple[Spaces, bool]:
    """Return the environment's spaces without building it, and whether they are known or guessed."""
    environment = training.environment
    entry = ENTRIES.get(environment.id)
    if entry is not None:
        return entry.spaces(environment.frame_stack), True
    if isinstance(training.network, CNN):
        return Spaces((environment.frame_stack, 84, 84), (_GUESSED_BUTTONS,)), False
    limits = (1.0,) * _GUESSED_ACTIONS
    return Spaces((_GUESSED_NUMBERS,), (), tuple(-one for one in limits), limits), False


@dataclass(frozen=True)
class Sizes:
    """Bytes of messages, and multiplications of one sample. A trajectory and a state are those of one call."""

    weights: int
    learner: int
    trajectory: int
    state: int
    policy_macs: int
    learner_macs: int
    pictures: bool


def sizes_of(training: TrainingSpec, spaces: Spaces) -> Sizes:
    layout = towers(training.network, spaces)
    policy = [_parameters(layer) for layer in (*layout.trunk, *layout.policy)]
    value = [_parameters(layer) for layer in layout.value]
    arrays = 2 * (len(policy) + len(value)) + (not spaces.discrete)
    seen = 0 if spaces.pictures or not training.algorithm.normalise_observations else spaces.observation_size
    copies = 4 if training.algorithm.follows_a_target else 3
    parameters = sum(policy) + sum(value)
    return Sizes(
        weights=4 * sum(policy) + 8 * seen + _HEADER_BYTES + 2 * len(policy) * _HEADER_BYTES_AN_ARRAY,
        learner=4 * copies * parameters
        + 16 * seen
        + _HEADER_BYTES
        + copies * arrays * _HEADER_BYTES_AN_ARRAY,
        trajectory=_trajectory_bytes(training, spaces),
        state=_state_bytes(
            training, spaces, expectation_of(training.environment.id, pictures=spaces.pictures)
        ),
        policy_macs=policy_macs(training.network, spaces),
        learner_macs=learner_macs(training.network, spaces),
        pictures=spaces.pictures,
    )


def _parameters(layer: Layer) -> int:
    if isinstance(layer, Convolution):
        return layer.filters * (layer.inputs * layer.kernel**2 + 1)
    return layer.outputs * (layer.inputs + 1)


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


class Workload:
    """Makes records of calls that were never made. They are cached, because draws differ in chance only.

    `fewer`: each trajectory represents this many, of a fleet that is as many times larger.
    """

    def __init__(self, training: TrainingSpec, spaces: Spaces, *, fewer: int = 1) -> None:
        self.training = training
        self.sizes = sizes_of(training, spaces)
        self._fewer = fewer
        rollout = training.rollout
        self.steps_a_call = rollout.steps_per_call * rollout.environments_per_actor
        inferences = self.steps_a_call
        self._actor = Work(
            id="",
            name="",
            kind="rollout",
            where="actor",
            environment=training.environment.id,
            env_steps=self.steps_a_call,
            inferences=inferences,
            macs=self.sizes.policy_macs,
            pictures=self.sizes.pictures,
            bytes_in=self.sizes.weights + self.sizes.state,
            bytes_out=self.sizes.trajectory + self.sizes.state,
            memory_mb=rollout.memory_mb,
            deadline_s=rollout.deadline_s,
        )
        self._kept: dict[str, Work] = {}
        self._updates: dict[int, Work] = {}

    def rollout(self, name: str, *, attempt: int = 1) -> Work:
        key = f"{name}-a{attempt}"
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = replace(self._actor, id=key, name=name, attempt=attempt)
        return found

    def update(self, name: str, trajectories: int, *, attempt: int = 1) -> Work:
        """Return an update by this many trajectories: passes over minibatches, for any algorithm."""
        like = self._updates.get(trajectories)
        if like is None:
            like = self._updates[trajectories] = self._update(trajectories)
        return replace(like, id=f"{name}-a{attempt}", name=name, attempt=attempt)

    def _update(self, trajectories: int) -> Work:
        algorithm, sizes = self.training.algorithm, self.sizes
        batch = max(1, trajectories * self._fewer * self.steps_a_call)
        passes = int(getattr(algorithm, "epochs", 1))
        minibatches = passes * ceil(batch / int(getattr(algorithm, "minibatch_size", batch)))
        return Work(
            id="",
            name="",
            kind="update",
            where="learner",
            minibatches=minibatches,
            samples=batch * passes,
            macs=sizes.learner_macs,
            pictures=sizes.pictures,
            decision_macs=self.training.scaling.decision_macs,
            # A fleet that represents a larger one has lines that are as many times slower.
            bytes_in=sizes.learner // self._fewer + trajectories * sizes.trajectory,
            bytes_out=(sizes.learner + sizes.weights + _UPDATE_REPORT_BYTES) // self._fewer,
            memory_mb=self.training.rollout.memory_mb,
            deadline_s=_LEARNER_S,
        )

    def evaluation(self, actors: int, episode_steps: float) -> list[Work]:
        """Return the calls of one evaluation after a round of this many actors, with episodes of this mean length."""
        episodes = self.training.evaluation.episodes
        share = ceil(episodes / min(actors, episodes, CALLS_AT_MOST))
        longest_s = min(_LEARNER_S, self.training.rollout.deadline_s * share)
        works = []
        for position, begin in enumerate(range(0, episodes, share)):
            played = min(share, episodes - begin)
            steps = max(1, round(played * episode_steps))
            works.append(
                replace(
                    self._actor,
                    id=f"evaluate{position}-a1",
                    name=f"evaluate{position}",
                    kind="evaluate",
                    episodes=played,
                    env_steps=steps,
                    inferences=steps,
                    bytes_in=self.sizes.weights,
                    bytes_out=_HEADER_BYTES + 16 * played,
                    deadline_s=longest_s,
                )
            )
        return works
