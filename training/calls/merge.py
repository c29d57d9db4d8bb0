"""Merges: the learner takes all pushes that have arrived and makes the next version of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from training.calls.kind import LONGEST_CALL_S, SLACK_BYTES, BadAnswer, BillPart, CallKind, PlannedCall
from training.calls.sgd import expected_push_bytes
from training.data.manifest import DataShape
from training.engine.codec import encode
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.supervised import pushes
from training.supervised.descent_state import DescentState
from training.supervised.models import AnyModel
from training.supervised.models.model import Parameters, parameter_count
from training.supervised.models.optimisers import AnyOptimiser

_HEADER_BYTES = 600
_STATE_COPIES = {"sgd": 1, "momentum": 2, "adam": 3}


class MergeRequest(CallRequest):
    """Take an optimiser's step for each push, in order, or with `together` one step with their mean by rows.

    The call's inputs are the learner's state, then the pushes.
    """

    kind: Literal["merge"] = "merge"
    model: AnyModel
    shape: DataShape
    optimiser: AnyOptimiser
    together: bool


class Merge(CallKind[MergeRequest]):
    name = "merge"
    request = MergeRequest
    role = "learning"
    makes_version = True
    timed_as = "learning"
    where = "learner"
    part = BillPart("learner", "Learner", "Updates")
    title = "Merge"
    who = "Learner"
    subject = "A merge"
    attempts = 2
    deadline_s = LONGEST_CALL_S

    def answer_limit_bytes(self, call: Call, request: MergeRequest) -> int:
        return 2 * sum(map(len, call.inputs[:1])) + SLACK_BYTES

    def check(self, call: Call, request: MergeRequest, result: Result) -> None:
        """Merge again: it is a few sums, so that every byte of the answer is known."""
        known = merge(call, request)
        if result.payload != known.payload:
            raise BadAnswer("merge", "the merge is not that of these pushes")
        if result.slot_state is not None:
            raise BadAnswer("state", "a merge has no state of its own")
        if (result.usage.minibatches, result.usage.samples, result.usage.macs) != (
            known.usage.minibatches,
            known.usage.samples,
            known.usage.macs,
        ):
            raise BadAnswer("work", "the reported work is not that of these pushes")

    def expected_work(self, planned: PlannedCall) -> Usage:
        training = planned.training
        numbers = sum(int(np.prod(shape)) for shape in training.parameter_shapes.values())
        push_bytes, weights_bytes = (
            expected_push_bytes(training),
            pushes.most_bytes(training.parameter_shapes),
        )
        arrived = max(1, planned.contributions * planned.fewer)
        state_bytes = 4 * _STATE_COPIES[training.optimiser.kind] * numbers + _HEADER_BYTES
        return Usage(
            minibatches=arrived,
            samples=arrived,
            macs=numbers,
            bytes_in=state_bytes // planned.fewer + planned.contributions * push_bytes,
            bytes_out=(state_bytes + weights_bytes) // planned.fewer,
        )


def merge(call: Call, request: MergeRequest) -> Result:
    """Return the next version's state and weights, and what the pushes were together."""
    state = DescentState.decode(call.inputs[0])
    shapes = pushes.shapes_of(request.model, request.shape)
    pushed = [pushes.Push.decode(payload, shapes) for payload in call.inputs[1:]]
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


def _mean(pushed: Sequence[pushes.Push]) -> Parameters:
    """Return the mean of the pushes, each weighed by its rows."""
    rows = sum(push.rows for push in pushed)
    mean: Parameters = {}
    for push in pushed:
        for name, gradient in push.gradient.items():
            share = gradient * gradient.dtype.type(push.rows / rows)
            mean[name] = mean[name] + share if name in mean else share
    return mean
