"""Inputs for measurements: learner states, calls, and random trajectories."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from training.calls.apply import ApplyRequest
from training.calls.gradient import GradientRequest
from training.calls.rollout import RolloutRequest
from training.calls.update import UpdateRequest
from training.engine.codec import encode
from training.engine.messages import BlobRef, Call, CallRequest
from training.engine.seeds import derive
from training.engine.torch_loading import device
from training.rl.algorithms import AnyAlgorithm, optimisation
from training.rl.algorithms.ppo import PPO
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.making import spaces_of
from training.rl.environments.model import EnvironmentSpec
from training.rl.learner import LearnerState
from training.rl.networks import CNN, MLP, Network
from training.rl.spaces import Spaces

DEADLINE_S = 600.0


def recipe(spaces: Spaces, **fields: Any) -> PPO:
    """Return PPO with the usual settings for such environments: numbers normalised, rewards of games clipped."""
    numbers = not spaces.pictures
    return PPO(normalise_observations=numbers, normalise_rewards=numbers, clip_rewards=not numbers, **fields)


def network_for(spaces: Spaces) -> Network:
    return CNN() if spaces.pictures else MLP()


def initial(algorithm: AnyAlgorithm, network: Network, spaces: Spaces, version: int = 0) -> LearnerState:
    return replace(algorithm.initial_state(network, spaces, 0), version=version)


class Slot:
    """Rollout calls that continue each other. Each brings new weights, as each round does."""

    def __init__(self, environment: EnvironmentSpec, network: Network | None = None, copies: int = 1) -> None:
        self.environment = environment
        self.spaces = spaces_of(environment)
        self.network = network or network_for(self.spaces)
        self.copies = copies
        self.slot_state: bytes | None = None
        self.serial = 0
        algorithm = recipe(self.spaces)
        self._published = [
            initial(algorithm, self.network, self.spaces, version).actor_weights(self.network)
            for version in (0, 1)
        ]

    def call(self, steps: int) -> tuple[Call, bytes]:
        """Return the next fragment and the weights that it names."""
        self.serial += 1
        weights = self._published[self.serial % 2]
        reference = BlobRef(
            version=self.serial % 2, sha256=hashlib.sha256(weights).hexdigest(), byte_count=len(weights)
        )
        request = RolloutRequest(
            environment=self.environment, environments=self.copies, steps=steps, slot=0, discount=0.99
        )
        return (
            Call(
                id=f"rollout-{self.serial}",
                request=request,
                where="actor",
                round_no=self.serial,
                seed=derive(0, "rollout", 0, self.serial),
                deadline_s=DEADLINE_S,
                memory_mb=1024,
                weights=reference,
                slot_state=self.slot_state,
            ),
            weights,
        )


def trajectory(spaces: Spaces, steps: int, copies: int, seed: int) -> bytes:
    """Return a fragment like a rollout's, of random numbers; every hundredth step ends an episode."""
    rng = np.random.Generator(np.random.PCG64(seed))
    shape = (steps, copies, *spaces.observation_shape)

    def seen(*leading: int) -> Any:
        if spaces.pictures:
            return rng.integers(0, 255, (*leading, *spaces.observation_shape), dtype=np.uint8)
        return rng.standard_normal((*leading, *spaces.observation_shape), dtype=np.float32)

    if spaces.discrete:
        actions: Any = rng.integers(0, spaces.action_counts[0], (steps, copies))
    else:
        actions = rng.standard_normal((steps, copies, len(spaces.action_low)), dtype=np.float32)
    terminated = np.zeros((steps, copies), dtype=np.bool_)
    terminated[99::100] = True
    log_probs = rng.standard_normal((steps, copies), dtype=np.float32) * np.float32(0.1) - np.float32(3.0)
    return encode(
        {
            "observations": seen(*shape[:2]),
            "actions": actions,
            "log_probs": log_probs,
            "rewards": rng.standard_normal((steps, copies), dtype=np.float32),
            "terminated": terminated,
            "truncated": np.zeros((steps, copies), dtype=np.bool_),
            "discounted_returns": rng.standard_normal((steps, copies)),
            "last_observations": seen(copies),
            "final_index": np.zeros((0, 2), dtype=np.int32),
            "final_observations": seen(0),
            "episode_returns": np.zeros(0),
            "episode_lengths": np.zeros(0, dtype=np.int32),
            "version": 0,
            "slot": 0,
        }
    )


def update_call(algorithm: AnyAlgorithm, network: Network, state: bytes, payloads: list[bytes]) -> Call:
    """Return an update of `state` by these trajectories."""
    return Call(
        id="update",
        request=UpdateRequest(algorithm=algorithm, network=network, progress=0.0),
        where="learner",
        round_no=1,
        seed=1,
        deadline_s=DEADLINE_S,
        memory_mb=1024,
        inputs=(state, *payloads),
    )


class SliceSample:
    """One learner over one slice of four trajectories of 256 steps: its calls for gradients, and for a version."""

    def __init__(self, environment: str, network: MLP, passes: int) -> None:
        spaces = ENTRIES[environment].spaces(4)
        self._environment = EnvironmentSpec(id=environment)
        self._passes = passes
        algorithm = recipe(spaces, epochs=passes)
        self._shared: dict[str, Any] = {"algorithm": algorithm, "network": network, "progress": 0.0}
        self._state = initial(algorithm, network, spaces)
        self._slice = tuple(trajectory(spaces, 256, 1, seed) for seed in range(4))
        self.parameters = self._state.for_gradients().encode()

    def gradient(self, pass_no: int, start: bytes | None) -> Call:
        """Return a pass over the slice. `start` is what the first pass returned as its state."""
        request = GradientRequest(
            environment=self._environment, pass_no=pass_no, passes=self._passes, **self._shared
        )
        digest = hashlib.sha256(self.parameters).hexdigest()
        weights = BlobRef(version=self._state.version, sha256=digest, byte_count=len(self.parameters))
        return _learners_call(request, self._slice, slot_state=start, weights=weights)

    def apply(self, gradients: tuple[bytes, ...]) -> Call:
        """Return the call that makes a version of gradients."""
        request = ApplyRequest(weights=(1.0,) * len(gradients), **self._shared)
        return _learners_call(request, (self._state.encode(), *gradients))


def learners_clock(network: Network) -> Callable[[], float]:
    """Return the clock to use: learning from pictures uses all cores or a GPU, which only wall-clock time measures."""
    on_the_wall = network.reads_pictures or device() == "cuda"
    return time.perf_counter if on_the_wall else time.process_time


def learn_on_gpu() -> None:
    """Let this process learn everything on its GPU, if it has one, also what a core would learn sooner."""
    optimisation.is_quicker_on_gpu = lambda macs, samples: True


def _learners_call(request: CallRequest, inputs: tuple[bytes, ...], **parts: Any) -> Call:
    return Call(
        id=request.kind,
        request=request,
        where="learner",
        round_no=1,
        seed=1,
        deadline_s=DEADLINE_S,
        memory_mb=1024,
        inputs=inputs,
        **parts,
    )
