"""Merges: the learner takes all pushes that have arrived and makes the next version of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from training.calls.kind import LONGEST_CALL_S, SLACK_BYTES, BadAnswer, BillPart, CallKind, CallRequest
from training.calls.sgd import expected_push_bytes
from training.data.manifest import DataShape
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache
from training.supervised import pushes
from training.supervised.models import AnyModel
from training.supervised.models.optimisers import AnyOptimiser

if TYPE_CHECKING:
    from training.calls.planned import PlannedCall
    from training.engine.messages import Call

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

    def run(self, call: Call, request: MergeRequest, weights: bytes | None, warm_cache: WarmCache) -> Result:
        from training.functions.merge import merge

        return merge(call, request)

    def answer_limit_bytes(self, call: Call, request: MergeRequest) -> int:
        return 2 * sum(map(len, call.inputs[:1])) + SLACK_BYTES

    def check(self, call: Call, request: MergeRequest, result: Result) -> None:
        """Merge again: it is a few sums, so that every byte of the answer is known."""
        from training.functions.merge import merge

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
