"""A kind of call for tests: it adds numbers up. One file like any kind's; its row is added where a test needs it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from training.calls.kind import SLACK_BYTES, BadAnswer, BillPart, CallKind, PlannedCall, read_document
from training.engine.codec import decode, encode
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache

MACS = 2_000_000


class AddRequest(CallRequest):
    """Add up the numbers in the call's input, `passes` times over."""

    kind: Literal["add"] = "add"
    passes: int


class Add(CallKind[AddRequest]):
    name = "add"
    request = AddRequest
    role = "learning"
    timed_as = "learning"
    where = "actor"
    part = BillPart("sums", "Sums", "Adding numbers up")
    title = "Addition"
    who = "Adder"
    subject = "An addition"
    attempts = 4
    deadline_s = 30.0

    def answer_limit_bytes(self, call: Call, request: AddRequest) -> int:
        return SLACK_BYTES

    def check(self, call: Call, request: AddRequest, result: Result) -> None:
        read_document(result.payload, self.answer_limit_bytes(call, request), {"sum"}, "sum")
        if result.payload != _sum_of(call) or result.slot_state is not None:
            raise BadAnswer("sum", "this is not the sum of these numbers")
        if result.usage != _usage(call, request):
            raise BadAnswer("work", "the reported work is not that of the numbers")

    def expected_work(self, planned: PlannedCall) -> Usage:
        return Usage(
            minibatches=1, samples=max(1, planned.contributions), macs=MACS, bytes_in=100, bytes_out=100
        )


def add(call: Call, request: AddRequest, weights: bytes | None, warm_cache: WarmCache) -> Result:
    """Its body."""
    return Result(_sum_of(call), None, _usage(call, request))


def _usage(call: Call, request: AddRequest) -> Usage:
    numbers = len(decode(call.inputs[0])["numbers"])
    return Usage(minibatches=request.passes, samples=numbers * request.passes, macs=MACS)


def numbers(*given: float) -> tuple[bytes, ...]:
    """Return the input of a call that adds these up."""
    return (encode({"numbers": np.array(given, dtype=np.float64)}),)


def _sum_of(call: Call) -> bytes:
    return encode({"sum": np.array([decode(call.inputs[0])["numbers"].sum()])})
