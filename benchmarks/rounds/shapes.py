"""Compares the simulated cloud's times with this machine's: five shapes of a job, really and in virtual time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud.timing.calibration.part import Parts, run

_TIMES = "benchmarks.rounds.times"
_WARM_UP_ROUNDS = 3
_NEVER = 100_000


@dataclass(frozen=True)
class Shape:
    """What rounds differ in: the environment, the actors and their steps, the network, and the update."""

    name: str
    environment: str
    actors: int
    steps: int
    network: dict[str, Any]
    epochs: int
    minibatch: int
    rounds: int

    def training(self, rounds: int) -> dict[str, Any]:
        """Return the job as a document of `TrainingSpec`."""
        pictures = self.network["kind"] == "cnn"
        return {
            "environment": {"id": self.environment},
            "algorithm": {
                "kind": "ppo",
                "epochs": self.epochs,
                "minibatch_size": self.minibatch,
                "normalise_observations": not pictures,
                "normalise_rewards": not pictures,
                "clip_rewards": pictures,
            },
            "network": self.network,
            "scaling": {"kind": "fixed", "actors": self.actors},
            "rollout": {"steps_per_call": self.steps},
            "evaluation": {"every_rounds": _NEVER, "episodes": 1},
            "checkpoints": {"every_rounds": _NEVER},
            "stop": {"env_steps": None, "rounds": _WARM_UP_ROUNDS + rounds},
        }


_MLP, _LARGE = {"kind": "mlp"}, {"kind": "mlp", "hidden": [256, 256]}
SHAPES = (
    Shape("CartPole, 4 actors of 256 steps", "CartPole-v1", 4, 256, _MLP, 10, 64, 20),
    Shape("Hopper, 2 actors of 512 steps", "Hopper-v5", 2, 512, _MLP, 10, 256, 15),
    Shape("Hopper, 8 actors of 256 steps, 2x256", "Hopper-v5", 8, 256, _LARGE, 4, 256, 12),
    Shape("Humanoid, 4 actors of 256 steps", "Humanoid-v5", 4, 256, _MLP, 8, 128, 12),
    Shape(
        "SpaceInvaders, 2 actors of 128 steps",
        "ALE/SpaceInvaders-v5",
        2,
        128,
        {"kind": "cnn", "layers": "papers", "hidden": [256]},
        2,
        64,
        8,
    ),
)
ENVIRONMENTS = tuple(dict.fromkeys(shape.environment for shape in SHAPES))


@dataclass(frozen=True)
class ShapeComparison:
    """Median seconds of a round and of its parts, without the first rounds."""

    shape: Shape
    measured: dict[str, float]
    simulated: dict[str, float]

    @property
    def ratio(self) -> float:
        """Simulated over measured."""
        return self.simulated["total_s"] / self.measured["total_s"]


def compare(parts: Parts, stack: Path, profile: Path, rounds: int | None = None) -> Iterator[ShapeComparison]:
    """Yield every shape, here and on the simulated machine of these files."""
    for shape in SHAPES:
        arguments = {"training": shape.training(rounds or shape.rounds)}
        measured = parts.run(shape.name, _TIMES, arguments)
        simulated = run(_TIMES, {**arguments, "stack": str(stack), "profile": str(profile)})
        yield ShapeComparison(shape, _medians(measured), _medians(simulated))


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values[_WARM_UP_ROUNDS:]) for name, values in times.items()}
