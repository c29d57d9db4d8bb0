"""Small specs for tests of the engine."""

from __future__ import annotations

from typing import Any

from training.spec import TrainingSpec


def cartpole(**changes: Any) -> TrainingSpec:
    """The CartPole recipe, with parts replaced: `cartpole(stop={"rounds": 3}, seed=1)`."""
    document: dict[str, Any] = {
        "environment": {"id": "CartPole-v1"},
        "algorithm": {
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
    for name, change in changes.items():
        document[name] = {**document[name], **change} if isinstance(document.get(name), dict) else change
    return TrainingSpec.model_validate(document)


def tiny(environment: str = "CartPole-v1", **changes: Any) -> TrainingSpec:
    """A few quick rounds of anything."""
    base: dict[str, Any] = {
        "environment": {"id": environment},
        "rollout": {"steps_per_call": 16},
        "scaling": {"kind": "fixed", "actors": 3},
        "algorithm": {
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
    for name, change in changes.items():
        keep = (
            isinstance(base.get(name), dict) and "kind" not in change if isinstance(change, dict) else False
        )
        base[name] = {**base[name], **change} if keep else change
    return TrainingSpec.model_validate(base)
