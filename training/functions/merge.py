"""Merging pushes: one optimiser's step for each, or one for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from training.calls.merge import MergeRequest
from training.engine.codec import encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result
from training.supervised.descent_state import DescentState
from training.supervised.models.model import Parameters, parameter_count
from training.supervised.pushes import Push, shapes_of


def merge(call: Call, request: MergeRequest) -> Result:
    """Return the next version's state and weights, and what the pushes were together."""
    state = DescentState.decode(call.inputs[0])
    shapes = shapes_of(request.model, request.shape)
    pushed = [Push.decode(payload, shapes) for payload in call.inputs[1:]]
    parameters, optimiser = state.parameters, state.optimiser
    for gradient in [_mean(pushed)] if request.together else [push.gradient for push in pushed]:
        parameters, optimiser = request.optimiser.step(parameters, gradient, optimiser)
    after = replace(state, version=state.version + 1, parameters=parameters, optimiser=optimiser)
    rows = sum(push.rows for push in pushed)
    stale = [state.version - push.version for push in pushed]
    payload = encode(
        {
            "state": after.encode(),
            "weights": after.weights,
            "version": after.version,
            "env_steps": rows,
            "loss": sum(push.loss * push.rows for push in pushed) / rows,
            "pushes": len(pushed),
            "pushed_bytes": sum(map(len, call.inputs[1:])),
            "staleness_mean": float(np.mean(stale)),
            "staleness_most": max(stale),
            "diverged": after.diverged or any(push.diverged for push in pushed),
        }
    )
    usage = Usage(minibatches=len(pushed), samples=len(pushed), macs=parameter_count(parameters))
    return Result(payload, None, usage)


def _mean(pushed: Sequence[Push]) -> Parameters:
    """Return the mean of the pushes, each weighed by its rows."""
    rows = sum(push.rows for push in pushed)
    mean: Parameters = {}
    for push in pushed:
        for name, gradient in push.gradient.items():
            share = gradient * gradient.dtype.type(push.rows / rows)
            mean[name] = mean[name] + share if name in mean else share
    return mean
