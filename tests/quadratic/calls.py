"""Calls of a training that fits a quadratic: noisy gradients, a step, and the loss."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from training.calls.kind import (
    SLACK_BYTES,
    BadAnswer,
    BillPart,
    CallKind,
    PlannedCall,
    read_document,
)
from training.engine.codec import Document, decode, encode
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache, required_weights


class SlopeRequest(CallRequest):
    """Draw noisy gradients of ½‖θ − 1‖² at the published θ."""

    kind: Literal["slope"] = "slope"
    samples: int
    slot: int


class DescendRequest(CallRequest):
    """Move θ against the mean of the gradients in the call's inputs, which begin with the learner's state."""

    kind: Literal["descend"] = "descend"
    rate: float


class AppraiseRequest(CallRequest):
    """Compute the loss at the published θ."""

    kind: Literal["appraise"] = "appraise"


def state_of(theta: Any, version: int) -> bytes:
    return encode({"theta": np.asarray(theta, np.float64), "version": version})


def loss_at(theta: Any) -> float:
    return float(0.5 * np.square(theta - 1.0).sum())


class _OfQuadratics(CallKind[Any]):
    """What these kinds share: small answers that are known to the byte, because anyone can compute them again."""

    timed_as = "learning"
    where = "actor"

    def answer(self, call: Call, weights: bytes | None) -> tuple[Document, Usage]:
        raise NotImplementedError

    def run(self, call: Call, request: Any, weights: bytes | None, warm_cache: WarmCache) -> Result:
        document, usage = self.answer(call, weights)
        return Result(encode(document), None, usage)

    def answer_limit_bytes(self, call: Call, request: Any) -> int:
        return SLACK_BYTES

    def check(self, call: Call, request: Any, result: Result) -> None:
        read_document(result.payload, self.answer_limit_bytes(call, request), None, "quadratic")
        if result.slot_state is not None:
            raise BadAnswer("quadratic", "a quadratic has no state")

    def expected_work(self, planned: PlannedCall) -> Usage:
        return Usage(
            minibatches=1, samples=max(1, planned.contributions), macs=1000, bytes_in=500, bytes_out=500
        )


class Slope(_OfQuadratics):
    name = "slope"
    request = SlopeRequest
    role = "sampling"
    part = BillPart("slopes", "Slopes", "Drawing gradients")
    title = "Slope"
    who = "Drawer"
    subject = "A gradient"

    def answer(self, call: Call, weights: bytes | None) -> tuple[Document, Usage]:
        request, published = call.request, decode(required_weights(weights))
        assert isinstance(request, SlopeRequest)
        rng = np.random.Generator(np.random.PCG64(call.seed))
        noise = rng.normal(size=(request.samples, len(published["theta"]))).mean(axis=0)
        gradient = published["theta"] - 1.0 + 0.1 * noise
        document = {"gradient": gradient, "samples": request.samples, "version": published["version"]}
        return document, Usage(minibatches=1, samples=request.samples, macs=1000)


class Descend(_OfQuadratics):
    name = "descend"
    request = DescendRequest
    role = "learning"
    where = "learner"
    part = BillPart("learner", "Learner", "Updates")
    title = "Descent"
    who = "Learner"
    subject = "A descent"
    makes_version = True
    attempts = 2

    def answer(self, call: Call, weights: bytes | None) -> tuple[Document, Usage]:
        request, before = call.request, decode(call.inputs[0])
        assert isinstance(request, DescendRequest)
        drawn = [decode(payload) for payload in call.inputs[1:]]
        theta = before["theta"] - request.rate * np.mean([one["gradient"] for one in drawn], axis=0)
        after = state_of(theta, before["version"] + 1)
        document = {
            "state": after,
            "weights": after,
            "version": before["version"] + 1,
            "env_steps": sum(one["samples"] for one in drawn),
            "loss": loss_at(before["theta"]),
            "staleness_mean": float(np.mean([before["version"] - one["version"] for one in drawn])),
        }
        return document, Usage(minibatches=1, samples=len(drawn), macs=1000)


class Appraise(_OfQuadratics):
    name = "appraise"
    request = AppraiseRequest
    role = "judging"
    part = BillPart("evaluation", "Evaluation", "Evaluations")
    title = "Appraisal"
    who = "Judge"
    subject = "An appraisal"

    def answer(self, call: Call, weights: bytes | None) -> tuple[Document, Usage]:
        loss = loss_at(decode(required_weights(weights))["theta"])
        return {"loss": loss}, Usage(minibatches=1, samples=1, macs=1000)
