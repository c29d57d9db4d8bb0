"""The policy in numpy: one pass of a few observations, for networks and batches of several sizes."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from cloud.timing.calibration.samples import initial, recipe
from training.rl.environments.catalogue import ENTRIES
from training.rl.networks import CNN, MLP, Network
from training.rl.networks.inference import NumpyPolicy
from training.rl.spaces import Spaces

_MLPS = (
    ("CartPole-v1", (64, 64)),
    ("Hopper-v5", (64, 64)),
    ("Humanoid-v5", (64, 64)),
    ("Hopper-v5", (256, 256)),
    ("Humanoid-v5", (256, 256)),
)
_CNNS = (CNN(layers="papers", hidden=()), CNN(layers="papers", hidden=(256,)), CNN())
# Observations a pass: an actor has one copy of its environment, or a few.
_BATCHES = {"mlp": (1, 4, 8), "cnn": (1, 4)}
_BURST = 5


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return, for each repeat and case: observations a pass, multiplications of one, microseconds of a pass."""
    cases = [*_mlps(), *_cnns()]
    for case in cases:
        _pass_us(case, arguments["seconds"])
    return {
        "repeats": [
            [
                {name: case[name] for name in ("kind", "batch", "macs")}
                | {"us": _pass_us(case, arguments["seconds"])}
                for case in cases
            ]
            for _ in range(arguments["repeats"])
        ]
    }


def _mlps() -> list[dict[str, Any]]:
    cases = []
    for environment, hidden in _MLPS:
        spaces, network = ENTRIES[environment].spaces(4), MLP(hidden=hidden)
        cases += [_case("mlp", network, spaces, batch) for batch in _BATCHES["mlp"]]
    return cases


def _cnns() -> list[dict[str, Any]]:
    spaces = ENTRIES["ALE/SpaceInvaders-v5"].spaces(4)
    return [_case("cnn", network, spaces, batch) for network in _CNNS for batch in _BATCHES["cnn"]]


def _case(kind: str, network: Network, spaces: Spaces, batch: int) -> dict[str, Any]:
    rng = np.random.Generator(np.random.PCG64(0))
    policy = NumpyPolicy(initial(recipe(spaces), network, spaces).actor_weights(network))
    if spaces.pictures:
        seen: Any = rng.integers(0, 255, (batch, *spaces.observation_shape), dtype=np.uint8)
    else:
        seen = rng.standard_normal((batch, *spaces.observation_shape), dtype=np.float32)
    return {
        "kind": kind,
        "batch": batch,
        "macs": network.policy_macs(spaces),
        "policy": policy,
        "observations": seen,
        "noise": policy.draw_noise(rng, 1, batch)[0],
    }


def _pass_us(case: dict[str, Any], seconds: float) -> float:
    """Return the median of short bursts, so that an interruption of one of them does not count.

    Log-probabilities are computed for a whole fragment at once, which takes next to nothing a pass.
    """
    act, observations, noise = case["policy"].act, case["observations"], case["noise"]
    bursts: list[float] = []
    end_s = time.process_time() + seconds
    while not bursts or time.process_time() < end_s:
        began_s = time.process_time()
        for _ in range(_BURST):
            act(observations, noise)
        bursts.append((time.process_time() - began_s) / _BURST)
    return statistics.median(bursts) * 1e6
