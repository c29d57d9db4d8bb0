"""Updates of several learners at once on one GPU, each in a process of its own, as jobs and learners' calls are."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any

from cloud.timing.calibration.samples import initial, learn_on_gpu, recipe, trajectory, update_call
from training.engine.messages import Call
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.environments.catalogue import ENTRIES
from training.rl.networks import CNN, MLP, Network

# As patient as the part itself: where others keep the cores busy, processes start slowly.
_LIMIT_S = 300.0
_barrier: Barrier | None = None
_CASES: dict[str, tuple[str, Network, int]] = {
    "mlp": ("Hopper-v5", MLP(hidden=(256, 256)), 256),
    "cnn": ("ALE/SpaceInvaders-v5", CNN(layers="papers", hidden=(256,)), 64),
}


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return, by kind of network and number of learners, what an update took each of them: microseconds.

    `arguments`: which `kinds`, how many `learners` in turn, and the `seconds` in which each makes as many updates as
    it can.
    """
    seconds = arguments["seconds"]
    return {
        kind: {str(count): _together(kind, count, seconds) for count in arguments["learners"]}
        for kind in arguments["kinds"]
    }


def _together(kind: str, count: int, seconds: float) -> list[float]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(count)
    with ProcessPoolExecutor(count, context, initializer=_meet_at, initargs=(barrier,)) as learners:
        futures = [learners.submit(_learn, kind, seconds) for _ in range(count)]
        return [future.result() for future in futures]


def _meet_at(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _learn(kind: str, seconds: float) -> float:
    """Return microseconds an update, from the moment when all learners are ready until none is measured any more."""
    assert _barrier is not None
    learn_on_gpu()
    try:
        call = _update(kind)
        execute(call, None, WarmCache())
        _barrier.wait(_LIMIT_S)
        began_s, updates = time.perf_counter(), 0
        while time.perf_counter() - began_s < seconds:
            execute(call, None, WarmCache())
            updates += 1
        took_us = (time.perf_counter() - began_s) * 1e6 / updates
        # Nobody leaves while others are still measured: they would have the GPU to themselves.
        _barrier.wait(_LIMIT_S)
    except BaseException:
        _barrier.abort()
        raise
    return took_us


def _update(kind: str) -> Call:
    environment, network, steps = _CASES[kind]
    spaces = ENTRIES[environment].spaces(4)
    algorithm = recipe(spaces, minibatch_size=256, epochs=4)
    payloads = [trajectory(spaces, steps, 1, seed) for seed in range(4)]
    return update_call(algorithm, network, initial(algorithm, network, spaces).encode(), payloads)
