"""Minibatch gradient descent on some rows: a function takes local steps from the newest parameters and pushes the sum
of its gradients.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Any, Literal

import numpy as np
from pydantic import Field

from training.calls.kind import BadAnswer, BillPart, CallKind, PlannedCall
from training.data import library
from training.data.manifest import DataShape, RowRange
from training.data.rows import SparseFeatures
from training.data.shard import BadShard
from training.data.store import MissingData, read_rows
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.supervised import pushes
from training.supervised.models import AnyModel
from training.supervised.models.lenet import LeNet

_HEADER_BYTES = 400


class SgdRequest(CallRequest):
    """Take a step for each `minibatch` of the rows in `ranges`, and push the sum of the gradients.

    Its rows come as the call's input, a shard of them alone, or from where the platform holds them. `significance`
    above 0 filters what travels; the rest is carried over to the slot's next call.
    """

    kind: Literal["sgd"] = "sgd"
    model: AnyModel
    shape: DataShape
    ranges: tuple[RowRange, ...]
    minibatch: int = Field(ge=1)
    learning_rate: float
    significance: float = Field(0.0, ge=0.0)
    slice_no: int
    slot: int

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.ranges)

    @property
    def steps(self) -> int:
        return ceil(self.rows / self.minibatch)


def expected_push_bytes(training: Any) -> int:
    """Return about the bytes of a push without a filter. A sparse one names the place of each number."""
    manifest = training.manifest
    touched = _touched_places(training.data, min(training.progress_a_call, manifest.rows))
    share = min(1.0, 2.0 * touched / manifest.width)
    return int(share * pushes.most_bytes(training.parameter_shapes))


@lru_cache(maxsize=64)
def _touched_places(data: str, rows: int) -> int:
    """Return how many places the first rows of the data have between them. A few texts are in most rows, so that these
    are far fewer than numbers. Without the data: as many as numbers.
    """
    manifest = library.manifest_of(data)
    if manifest.kind != "sparse":
        return manifest.width
    try:
        features = read_rows(library.store(), manifest.ranges(0, rows)).features
    except (MissingData, BadShard):
        return ceil(rows * manifest.nonzeros)
    assert isinstance(features, SparseFeatures)
    return len(np.unique(features.places))


class Sgd(CallKind[SgdRequest]):
    name = "sgd"
    request = SgdRequest
    role = "sampling"
    timed_as = "learning"
    where = "actor"
    part = BillPart("descent", "Gradient descent", "Functions that learn from their rows")
    title = "Gradient descent"
    who = "Function"
    subject = "A call (sgd)"

    def answer_limit_bytes(self, call: Call, request: SgdRequest) -> int:
        # What is carried over has the same arrays as the push.
        return 2 * pushes.most_bytes(pushes.shapes_of(request.model, request.shape))

    def check(self, call: Call, request: SgdRequest, result: Result) -> None:
        shapes = pushes.shapes_of(request.model, request.shape)
        version = call.weights.version if call.weights is not None else 0
        try:
            push = pushes.Push.decode(result.payload, shapes)
            if result.slot_state is not None:
                pushes.decode_carried(result.slot_state, shapes)
        except pushes.BadPush as error:
            raise BadAnswer("push", f"the push cannot be used: {error}") from None
        values = push.version, push.slice_no, push.rows, push.steps
        expected = version, request.slice_no, request.rows, request.steps
        if values != expected:
            raise BadAnswer("push", f"the push is of version, slice, rows and steps {values}, not {expected}")
        if (result.slot_state is not None) != (request.significance > 0):
            raise BadAnswer("state", "the push carries something over without a filter, or nothing with one")
        work = result.usage.samples, result.usage.minibatches, result.usage.macs
        if work != (request.rows, request.steps, request.model.macs(request.shape)):
            raise BadAnswer(
                "work", f"{result.usage.samples} samples are reported; {request.rows} were requested"
            )

    def expected_work(self, planned: PlannedCall) -> Usage:
        training = planned.training
        manifest = training.manifest
        rows = min(training.progress_a_call, manifest.rows)
        row_bytes = manifest.byte_count / manifest.rows
        numbers = pushes.most_bytes(training.parameter_shapes)
        return Usage(
            minibatches=ceil(rows / training.minibatch),
            samples=rows,
            macs=training.model.macs(manifest.shape),
            pictures=isinstance(training.model, LeNet),
            bytes_in=numbers + round(rows * row_bytes) + _HEADER_BYTES,
            bytes_out=expected_push_bytes(training),
        )
