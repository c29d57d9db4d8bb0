"""Calls of learners that compute gradients: each pass over a slice, and the step that makes a version of two."""

from __future__ import annotations

import time
from typing import Any

from cloud.calibration.samples import Learning
from training.architectures import MLP
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.messages import Call

_PASSES = 10
_CASES = (("Hopper-v5", MLP()), ("Hopper-v5", MLP(hidden=(256, 256))), ("Humanoid-v5", MLP()))


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the work of each call in each case, and its microseconds for each repeat: of a gradient the mean of all
    passes over a slice.
    """
    return {
        str(number): _measured(Learning(name, network, _PASSES), arguments["repeats"])
        for number, (name, network) in enumerate(_CASES)
    }


def _measured(learning: Learning, repeats: int) -> dict[str, Any]:
    parameters = learning.parameters
    first = learning.gradient(1, None)
    later = learning.gradient(2, execute(first, parameters, WarmCache()).env_state)
    computed = execute(later, parameters, WarmCache())
    apply = learning.apply((computed.payload, computed.payload))
    applied = execute(apply, None, WarmCache())
    times: dict[str, list[float]] = {"gradient": [], "apply": []}
    for _ in range(repeats):
        once, again = _us(first, parameters), _us(later, parameters)
        times["gradient"].append((once + (_PASSES - 1) * again) / _PASSES)
        times["apply"].append(_us(apply, None))
    return {
        "gradient": {**_work(later, computed, len(parameters)), "us": times["gradient"]},
        "apply": {**_work(apply, applied), "us": times["apply"]},
    }


def _us(call: Call, weights: bytes | None) -> float:
    began_s = time.process_time()
    execute(call, weights, WarmCache())
    return (time.process_time() - began_s) * 1e6


def _work(call: Call, result: Result, weights_bytes: int = 0) -> dict[str, Any]:
    usage = result.usage
    return {
        "minibatches": usage.minibatches,
        "samples": usage.samples,
        "macs": usage.macs,
        "bytes_in": sum(map(len, call.inputs)) + len(call.env_state or b"") + weights_bytes,
    }
