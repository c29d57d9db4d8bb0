"""Calls of learners that compute gradients: each pass over a slice, and steps that make a version of few or many."""

from __future__ import annotations

from typing import Any

from cloud.timing.calibration.samples import SliceSample, learners_clock
from training.engine.messages import Call
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.rl.networks import MLP

_PASSES = 10
_FEW, _MANY = 1, 8
_CASES = (("Hopper-v5", MLP()), ("Hopper-v5", MLP(hidden=(256, 256))), ("Humanoid-v5", MLP()))


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the work of each call in each case, and its microseconds for each repeat: of a gradient the mean of all
    passes over a slice.
    """
    return {
        str(number): _measured(SliceSample(name, network, _PASSES), arguments["repeats"])
        for number, (name, network) in enumerate(_CASES)
    }


def _measured(learning: SliceSample, repeats: int) -> dict[str, Any]:
    parameters = learning.parameters
    first = learning.gradient(1, None)
    later = learning.gradient(2, execute(first, parameters, WarmCache()).slot_state)
    computed = execute(later, parameters, WarmCache())
    steps = {f"apply_{count}": learning.apply((computed.payload,) * count) for count in (_FEW, _MANY)}
    results = {name: execute(call, None, WarmCache()) for name, call in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in ("gradient", *steps)}
    for _ in range(repeats):
        once, again = _us(first, parameters), _us(later, parameters)
        times["gradient"].append((once + (_PASSES - 1) * again) / _PASSES)
        for name, call in steps.items():
            times[name].append(_us(call, None))
    return {
        "gradient": {**_work(later, computed, len(parameters)), "us": times["gradient"]},
        **{name: {**_work(call, results[name]), "us": times[name]} for name, call in steps.items()},
    }


def _us(call: Call, weights: bytes | None) -> float:
    now_s = learners_clock(MLP())
    began_s = now_s()
    execute(call, weights, WarmCache())
    return (now_s() - began_s) * 1e6


def _work(call: Call, result: Result, weights_bytes: int = 0) -> dict[str, Any]:
    usage = result.usage
    return {
        "minibatches": usage.minibatches,
        "samples": usage.samples,
        "macs": usage.macs,
        "bytes_in": sum(map(len, call.inputs)) + len(call.slot_state or b"") + weights_bytes,
    }
