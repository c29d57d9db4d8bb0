"""Real calls for tests: CartPole rollouts, evaluations and updates, and weights that fit them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from training.calls.evaluate import EvaluateRequest
from training.calls.rollout import RolloutRequest
from training.calls.update import UpdateRequest
from training.engine.messages import BlobRef, Call
from training.rl.environments.making import spaces_of
from training.rl.environments.model import EnvironmentSpec
from training.rl.learner import LearnerState
from training.spec import TrainingSpec

CARTPOLE = EnvironmentSpec(id="CartPole-v1")
SPEC = TrainingSpec.model_validate(
    {
        "network": {"kind": "mlp", "hidden": [8]},
        "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 16},
    }
)


def learner_state(version: int = 0) -> LearnerState:
    return replace(SPEC.algorithm.initial_state(SPEC.network, spaces_of(CARTPOLE), seed=1), version=version)


def weights(version: int = 0) -> bytes:
    return learner_state(version).actor_weights(SPEC.network)


def rollout(name: str, ref: BlobRef | None, *, steps: int = 16, slot: int = 0, **changes: Any) -> Call:
    request = RolloutRequest(environment=CARTPOLE, environments=1, steps=steps, slot=slot, discount=0.99)
    return Call(id=name, request=request, weights=ref, **{**_DEFAULTS, **changes})


def evaluation(name: str, ref: BlobRef | None, **changes: Any) -> Call:
    request = EvaluateRequest(environment=CARTPOLE, episode_seeds=(1, 2))
    return Call(id=name, request=request, weights=ref, **{**_DEFAULTS, **changes})


def update(name: str, inputs: tuple[bytes, ...], **changes: Any) -> Call:
    request = UpdateRequest(algorithm=SPEC.algorithm, network=SPEC.network, progress=0.0)
    return Call(id=name, request=request, inputs=inputs, **{**_DEFAULTS, "where": "learner", **changes})


_DEFAULTS: dict[str, Any] = {
    "where": "actor",
    "round_no": 1,
    "seed": 7,
    "deadline_s": 60.0,
    "memory_mb": 1769,
}
