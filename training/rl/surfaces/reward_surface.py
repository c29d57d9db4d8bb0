"""Returns around a policy, along the two directions in which its objective is most curved (Nitro, figures 3 and 8).

`python -m training.rl.surfaces.reward_surface CHECKPOINT [--grid N] [--span S] [--episodes N] [--seed N]` prints one
JSON object a line: first the two eigenvalues, then each point of the grid as it is measured. Samples for the
curvature are sampled with the checkpoint's policy. Points are evaluated by whole deterministic episodes, with the
same seeds at every point.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from training.calls.evaluate import EvaluateRequest
from training.calls.rollout import RolloutRequest
from training.engine.checkpoints import CheckpointError
from training.engine.codec import decode
from training.engine.messages import Call
from training.engine.seeds import derive
from training.functions.body import WarmCache
from training.functions.evaluate import evaluate
from training.functions.rollout import rollout
from training.rl.batch import Batch
from training.rl.learner import LearnerState
from training.rl.measures.curvature import standardise
from training.rl.networks import Parameters
from training.rl.policies.trained import TrainedPolicy
from training.rl.surfaces.lanczos import Vector, leading_vectors
from training.rl.surfaces.surface import surface_of
from training.rl.surfaces.update_samples import UpdateSamples, policy_part

GRID_AT_MOST = 41
_PRODUCTS = 40
_FRAGMENTS, _STEPS = 8, 256
_SAMPLES = 1024
_DEADLINE_S = 3600.0


class NoDirections(ValueError):
    """The surface does not have two directions of known curvature."""


@dataclass(frozen=True)
class Directions:
    """The eigenvalues of the two directions, of the maximised objective, and the offsets of the grid's lines."""

    eigenvalues: tuple[float, float]
    offsets: tuple[float, ...]


@dataclass(frozen=True)
class Point:
    """The mean return at `row` along the first direction and `column` along the second; offset 0, 0 is the policy."""

    row: int
    column: int
    return_mean: float


def measure_surface(
    trained: TrainedPolicy, *, grid: int, span: float, episodes: int, seed: int
) -> Iterator[Directions | Point]:
    """Yield the directions, then the points from the middle of the grid outwards, so that early ones already show a
    shape.

    Raises NoDirections if the surface around the policy is flat, or its curvature is unknown.
    """
    warm_cache = WarmCache()
    update_samples = standardise(_sample_with_advantages(trained, warm_cache, seed))
    clip = trained.spec.algorithm.surrogate_clip
    network, state = trained.spec.network, trained.learner
    surface = surface_of(
        network, state.spaces, state.parameters, update_samples, objective="surrogate", clip=clip
    )
    leading = leading_vectors(surface.product, surface.size, 2, seed=seed, products=_PRODUCTS)
    if len(leading) < 2 or not np.isfinite([value for value, _ in leading]).all():
        raise NoDirections(
            "This policy's objective has no two directions to look along: around it the surface is flat, or its"
            " curvature is not a finite number. Take another checkpoint."
        )
    (first, along), (second, across) = leading
    offsets = np.linspace(-span, span, grid)
    yield Directions((first, second), tuple(float(offset) for offset in offsets))
    middle = (grid - 1) / 2
    places = [(row, column) for row in range(grid) for column in range(grid)]
    for row, column in sorted(places, key=lambda at: max(abs(at[0] - middle), abs(at[1] - middle))):
        moved = _moved(state, offsets[row] * along + offsets[column] * across)
        yield Point(row, column, _mean_return(trained, moved, episodes, seed, warm_cache))


def _sample_with_advantages(trained: TrainedPolicy, warm_cache: WarmCache, seed: int) -> UpdateSamples:
    """Sample with the policy and return the samples with its own algorithm's advantages, without learning from them."""
    spec, state = trained.spec, trained.learner
    weights = state.actor_weights(spec.network)
    payloads = []
    for slot in range(_FRAGMENTS):
        request = RolloutRequest(
            environment=spec.environment,
            environments=1,
            steps=_STEPS,
            slot=slot,
            discount=spec.algorithm.discount,
        )
        call = _call("rollout", request, derive(seed, "landscape", slot))
        payloads.append(rollout(call, request, weights, warm_cache).payload)
    batch = Batch.of(payloads, range(state.version, state.version + 1), state.spaces)
    update_samples = spec.algorithm.learn(state, batch, spec.network, 0.0, seed).update_samples
    stride = max(1, update_samples.size // _SAMPLES)
    return replace(update_samples.select(slice(None, None, stride)), columns=1)


def _moved(state: LearnerState, by: Vector) -> LearnerState:
    """Return the state with its policy's parameters moved along a vector."""
    moved: Parameters = dict(state.parameters)
    begin = 0
    for name, array in policy_part(state.parameters).items():
        step = by[begin : begin + array.size].reshape(array.shape)
        moved[name] = (array + step).astype(array.dtype)
        begin += array.size
    return replace(state, parameters=moved)


def _mean_return(
    trained: TrainedPolicy, state: LearnerState, episodes: int, seed: int, warm_cache: WarmCache
) -> float:
    seeds = tuple(derive(seed, "episode", n) % 2**32 for n in range(episodes))
    request = EvaluateRequest(environment=trained.spec.environment, episode_seeds=seeds)
    call = _call("evaluate", request, 0)
    played = decode(evaluate(call, request, state.actor_weights(trained.spec.network), warm_cache).payload)
    return float(np.mean(played["returns"]))


def _call(name: str, request: RolloutRequest | EvaluateRequest, seed: int) -> Call:
    return Call(
        id=name, request=request, where="actor", round_no=0, seed=seed, deadline_s=_DEADLINE_S, memory_mb=0
    )


def main() -> int:
    """Print the surface. On an error the last line is {"error": a sentence}."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--grid", type=int, default=15)
    parser.add_argument("--span", type=float, default=1.0)
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not 3 <= options.grid <= GRID_AT_MOST:
        parser.error(f"--grid must be between 3 and {GRID_AT_MOST}")
    try:
        trained = TrainedPolicy.read(options.checkpoint)
        surface = measure_surface(
            trained, grid=options.grid, span=options.span, episodes=options.episodes, seed=options.seed
        )
        for point in surface:
            print(json.dumps(asdict(point)), flush=True)
    except (CheckpointError, NoDirections) as error:
        print(json.dumps({"error": str(error)}))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
