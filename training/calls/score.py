"""Scores: a function judges the parameters by some of the held-out rows."""

from __future__ import annotations

from typing import Literal

import numpy as np

from training.calls.kind import (
    SLACK_BYTES,
    BadAnswer,
    BillPart,
    CallKind,
    PlannedCall,
    read_document,
)
from training.data.manifest import DataShape, RowRange
from training.data.shard import rows_of
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.supervised.models import AnyModel
from training.supervised.models.lenet import LeNet
from training.supervised.models.metrics import Judged, losses_of
from training.supervised.pushes import most_bytes

_KEYS = {"losses", "probabilities", "targets"}
_SUM_TOLERANCE = 1e-4
_LOSS_TOLERANCE = 1e-4
_HEADER_BYTES = 260


class ScoreRequest(CallRequest):
    """Return the loss and the probability of each class for each of the held-out rows in `ranges`."""

    kind: Literal["score"] = "score"
    model: AnyModel
    shape: DataShape
    ranges: tuple[RowRange, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.ranges)


class ScoreRows(CallKind[ScoreRequest]):
    name = "score"
    request = ScoreRequest
    role = "judging"
    timed_as = "learning"
    where = "actor"
    part = BillPart("evaluation", "Evaluation", "Judging what was learned so far")
    title = "Score"
    who = "Evaluation"
    subject = "A call (score)"

    def answer_limit_bytes(self, call: Call, request: ScoreRequest) -> int:
        return 4 * request.rows * (request.shape.classes + 2) + SLACK_BYTES

    def check(self, call: Call, request: ScoreRequest, result: Result) -> None:
        document = read_document(result.payload, self.answer_limit_bytes(call, request), _KEYS, "score")
        try:
            judged = Judged.of(document)
        except ValueError as error:
            raise BadAnswer("score", str(error)) from None
        if judged.probabilities.shape != (request.rows, request.shape.classes):
            raise BadAnswer("score", f"the scores are not those of {request.rows} rows")
        if (judged.losses < 0).any() or (judged.probabilities < 0).any():
            raise BadAnswer("score", "a loss or a probability is below 0")
        if (np.abs(judged.probabilities.sum(axis=1) - 1.0) > _SUM_TOLERANCE).any():
            raise BadAnswer("score", "the probabilities of a row do not add up to 1")
        if call.inputs and not np.array_equal(judged.targets, rows_of(call.inputs[0]).targets):
            raise BadAnswer("score", "the classes are not those of the rows")
        if not np.allclose(judged.losses, losses_of(judged.probabilities, judged.targets), _LOSS_TOLERANCE):
            raise BadAnswer("score", "the losses are not those of the probabilities")
        if result.slot_state is not None:
            raise BadAnswer("state", "a score has no state")
        if (result.usage.samples, result.usage.macs) != (request.rows, request.model.macs(request.shape)):
            raise BadAnswer(
                "work", f"{result.usage.samples} rows are reported; {request.rows} were requested"
            )

    def expected_work(self, planned: PlannedCall) -> Usage:
        training = planned.training
        manifest = training.manifest
        rows = -(-manifest.held_out_rows // (planned.sharing or training.score_calls(1)))
        return Usage(
            minibatches=1,
            samples=rows,
            macs=training.model.macs(manifest.shape),
            pictures=isinstance(training.model, LeNet),
            bytes_in=most_bytes(training.parameter_shapes)
            + round(rows * manifest.byte_count / manifest.rows),
            bytes_out=4 * rows * (len(manifest.classes) + 2) + _HEADER_BYTES,
        )
