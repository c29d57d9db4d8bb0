"""Small specs for tests of the engine."""

from __future__ import annotations

from typing import Any

from training.spec import TrainingSpec
from training.tasks.supervised_spec import Supervised


def cartpole(**changes: Any) -> TrainingSpec:
    """The CartPole recipe, with parts replaced: `cartpole(stop={"rounds": 3}, seed=1)`."""
    document: dict[str, Any] = {
        "environment": {"id": "CartPole-v1"},
        "algorithm": {
            "kind": "ppo",
            "learning_rate": 1e-3,
            "discount": 0.98,
            "trace_decay": 0.8,
            "clip_decay": True,
            "epochs": 20,
            "minibatch_size": 256,
        },
        "rollout": {"steps_per_call": 32},
        "scaling": {"kind": "fixed", "actors": 8},
        "stop": {"env_steps": 100_000, "target_return": 475.0},
        "evaluation": {"every_rounds": 20, "episodes": 5},
    }
    return _changed(document, changes)


def tiny(environment: str = "CartPole-v1", **changes: Any) -> TrainingSpec:
    """A few quick rounds of anything."""
    base: dict[str, Any] = {
        "environment": {"id": environment},
        "rollout": {"steps_per_call": 16},
        "scaling": {"kind": "fixed", "actors": 3},
        "algorithm": {
            "kind": "ppo",
            "epochs": 2,
            "minibatch_size": 16,
            "learning_rate_decay": False,
            "normalise_observations": True,
            "normalise_rewards": True,
        },
        "stop": {"env_steps": None, "rounds": 4},
        "evaluation": {"every_rounds": 2, "episodes": 2},
        "checkpoints": {"every_rounds": 2},
    }
    return _changed(base, changes)


def descent(**changes: Any) -> Supervised:
    """Two epochs over the digits by three functions: 23 calls each."""
    base: dict[str, Any] = {
        "data": "digits",
        "minibatch": 64,
        "scaling": {"kind": "fixed", "actors": 3},
        "stop": {"rounds": 2},
    }
    return Supervised.model_validate(_replaced(base, changes))


def _changed(document: dict[str, Any], changes: dict[str, Any]) -> TrainingSpec:
    return TrainingSpec.model_validate(_replaced(document, changes))


def _replaced(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`document` with parts replaced: field by field, or whole where a change says what kind it is."""
    for name, change in changes.items():
        part_of = isinstance(change, dict) and isinstance(document.get(name), dict) and "kind" not in change
        document[name] = {**document[name], **change} if part_of else change
    return document
