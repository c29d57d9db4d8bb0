"""The learner's call with one pass over its data and with several, to separate reading from learning."""

from __future__ import annotations

from typing import Any

from cloud.timing.calibration.samples import (
    initial,
    learn_on_gpu,
    learners_clock,
    recipe,
    trajectory,
    update_call,
)
from training.engine.torch_loading import device
from training.functions.body import WarmCache
from training.functions.run import execute, warm_learner
from training.rl.environments.catalogue import ENTRIES
from training.rl.networks import CNN, MLP, Network

# Environment, network, trajectories of 256 steps each (pictures: of 64), minibatch, passes beyond the first.
_HOPPER, _HUMANOID, _PICTURES = "Hopper-v5", "Humanoid-v5", "ALE/SpaceInvaders-v5"
_SMALL, _LARGE = MLP(), MLP(hidden=(256, 256))
_CASES: tuple[tuple[str, Network, int, int, int], ...] = (
    ("CartPole-v1", _SMALL, 2, 64, 4),
    (_HOPPER, _SMALL, 4, 64, 4),
    (_HOPPER, _SMALL, 8, 256, 8),
    (_HOPPER, _SMALL, 16, 1024, 8),
    (_HUMANOID, _SMALL, 8, 256, 6),
    (_HUMANOID, _SMALL, 16, 1024, 4),
    (_HOPPER, _LARGE, 4, 64, 2),
    (_HOPPER, _LARGE, 8, 256, 2),
    (_HOPPER, _LARGE, 16, 1024, 1),
    (_PICTURES, CNN(layers="papers", hidden=(256,)), 4, 64, 1),
    (_PICTURES, CNN(layers="papers", hidden=(256,)), 8, 256, 1),
    (_PICTURES, CNN(), 4, 64, 1),
    (_PICTURES, CNN(), 4, 256, 1),
)


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return, for each repeat and case, the work, and microseconds of a call with one pass and with more.

    `arguments`: repeats of cases with numbers and of those with pictures; a kind with 0 repeats is not measured.
    """
    warm_learner()
    learn_on_gpu()
    measured = {}
    for number, case in enumerate(_CASES):
        if repeats := arguments["repeats_cnn"] if case[1].reads_pictures else arguments["repeats"]:
            measured[str(number)] = _measured(*case, repeats)
    return {"cases": measured, "device": device()}


def _measured(
    environment: str, network: Network, trajectories: int, minibatch: int, more: int, repeats: int
) -> dict[str, Any]:
    spaces = ENTRIES[environment].spaces(4)
    steps = 64 if spaces.pictures else 256
    payloads = [trajectory(spaces, steps, 1, seed) for seed in range(trajectories)]
    state = initial(recipe(spaces), network, spaces).encode()
    calls = [
        update_call(recipe(spaces, minibatch_size=minibatch, epochs=epochs), network, state, payloads)
        for epochs in (1, 1 + more)
    ]
    # The first call warms caches and the libraries' own state.
    execute(calls[0], None, WarmCache())
    times_us, now_s = [], learners_clock(network)
    for _ in range(repeats):
        pair = []
        for call in calls:
            began_s = now_s()
            execute(call, None, WarmCache())
            pair.append((now_s() - began_s) * 1e6)
        times_us.append(pair)
    samples = trajectories * steps
    return {
        "kind": "cnn" if spaces.pictures else "mlp",
        "samples": samples,
        "minibatches": -(-samples // minibatch),
        "macs": network.learner_macs(spaces),
        "bytes_in": sum(map(len, calls[0].inputs)),
        "more": more,
        "times_us": times_us,
    }
