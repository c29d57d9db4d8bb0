"""Applying: the parameter function takes the learner's state and gradients, and returns the next version.

The optimiser, the normalisers, IMPACT's target and the weight of PPO's KL penalty live only here. At most one runs at
a time, beside the coordinator.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from training.calls.gradient import joined_facts
from training.calls.kind import (
    FIGURE_LIMIT,
    LONGEST_CALL_S,
    SLACK_BYTES,
    BadAnswer,
    BillPart,
    CallKind,
    PlannedCall,
    read_document,
)
from training.calls.update import UPDATE_ATTEMPTS, check_arrays, check_reports, state_in
from training.engine.codec import Document, decode
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.loops.aggregation import AggregationRule
from training.rl.algorithms import AnyAlgorithm
from training.rl.algorithms.slice_gradient import end_round
from training.rl.learner import LearnerState, PublishedPolicy, RoundSums
from training.rl.networks import AnyNetwork
from training.rl.normalisers import Moments

_REPORT_BYTES = 800
_KEYS = {
    "state",
    "weights",
    "parameters",
    "version",
    "report",
    "curvature",
    "noise_scale",
    "policy_shift",
}
_GROUPS = ("parameters", "first_moments", "second_moments", "target_parameters")


class ApplyRequest(CallRequest):
    """One version from the gradients of an aggregate. The call's inputs are the learner's state, then what the calls
    for gradients returned, in order of launch, each with its weight.

    What is due once a round (normalisers, the KL penalty's weight, the target) is done if this version `ends_round`.
    After the gradients come as many `policies` as learners fly with, whose distances from the new one are returned;
    gradients bring the states to measure them on.
    """

    kind: Literal["apply"] = "apply"
    algorithm: AnyAlgorithm
    network: AnyNetwork
    progress: float = Field(ge=0.0, le=1.0)
    weights: tuple[float, ...] = Field(min_length=1)
    rule: AggregationRule = "mean"
    ends_round: bool = True
    policies: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _weighs_by_positive_numbers(self) -> ApplyRequest:
        if not all(isfinite(weight) and weight > 0 for weight in self.weights):
            raise ValueError("the weight of a gradient is a positive number")
        return self


class Apply(CallKind[ApplyRequest]):
    name = "apply"
    request = ApplyRequest
    role = "learning"
    makes_version = True
    timed_as = "learning"
    where = "learner"
    part = BillPart("aggregation", "Aggregation", "Steps that gradients became")
    title = "Aggregation"
    who = "Learner"
    subject = "An aggregation"
    attempts = UPDATE_ATTEMPTS
    deadline_s = LONGEST_CALL_S

    def answer_limit_bytes(self, call: Call, request: ApplyRequest) -> int:
        # The next state has the arrays of the state before; its weights and parameters are some of them.
        return 4 * sum(map(len, call.inputs[:1])) + SLACK_BYTES

    def check(self, call: Call, request: ApplyRequest, result: Result) -> None:
        before = LearnerState.decode(call.inputs[0])
        gradients = gradients_in(call, request)
        facts = facts_of(before, request, gradients)
        document = read_document(
            result.payload,
            self.answer_limit_bytes(call, request),
            _KEYS | set(facts) | ({"distances"} if request.policies else set()),
            "update",
        )
        after = state_in(document["state"])
        _check_state(call, request, before, after, gradients)
        if type(document["version"]) is not int or document["version"] != after.version:
            raise BadAnswer("update", f"the update is of version {document['version']!r}, its state is not")
        known = {
            "weights": after.actor_weights(request.network),
            "parameters": after.for_gradients().encode(),
        }
        for name, data in known.items():
            if not isinstance(document[name], bytes) or document[name] != data:
                raise BadAnswer("update", f"the {name} are not those of the learner's state")
        for name, value in facts.items():
            if type(document[name]) is not type(value) or document[name] != value:
                raise BadAnswer("update", f"{name} is {document[name]!r}; the gradients have {value!r}")
        check_reports(document)
        if request.policies:
            _check_distances(call, request, document["distances"])
        usage = result.usage
        steps = len(gradients) if request.rule == "sequential" else 1
        work = usage.minibatches, usage.macs, usage.pictures
        if work != (steps, request.network.learner_macs(after.spaces), after.spaces.pictures):
            raise BadAnswer("work", f"{usage.minibatches} steps are reported; {steps} were requested")

    def expected_work(self, planned: PlannedCall) -> Usage:
        sizes = planned.sizes
        return Usage(
            minibatches=1,
            macs=sizes.learner_macs,
            pictures=sizes.pictures,
            bytes_in=sizes.learner + max(1, planned.gradients) * sizes.gradient,
            bytes_out=sizes.learner + sizes.weights + sizes.parameters + _REPORT_BYTES,
        )


def gradients_in(call: Call, request: ApplyRequest) -> list[Document]:
    """Return the gradients among a call's inputs."""
    return [decode(payload) for payload in call.inputs[1 : len(call.inputs) - request.policies]]


def policies_in(call: Call, request: ApplyRequest) -> list[PublishedPolicy]:
    """Return the policies among a call's inputs."""
    return [PublishedPolicy.decode(weights) for weights in call.inputs[len(call.inputs) - request.policies :]]


def weights_of(request: ApplyRequest, gradients: list[Document]) -> list[float]:
    """Return the weight of each gradient, with what its own slice makes of the step's length."""
    return [weight * gradient["length"] for weight, gradient in zip(request.weights, gradients, strict=True)]


def facts_of(before: LearnerState, request: ApplyRequest, gradients: list[Document]) -> dict[str, Any]:
    """Return what a version reports of its gradients."""
    weights = weights_of(request, gradients)
    return {**joined_facts(before.version, gradients), "step_length": sum(weights) / len(weights)}


def sums_with(before: LearnerState, gradients: list[Document]) -> RoundSums:
    """Return the round's sums with those of these gradients."""

    def moments(gradient: Document, name: str) -> Moments | None:
        if f"{name}_count" not in gradient:
            return None
        return Moments(gradient[f"{name}_mean"], gradient[f"{name}_variance"], gradient[f"{name}_count"])

    sums = before.round_sums
    for gradient in gradients:
        sums = sums.add(moments(gradient, "observation"), moments(gradient, "return"), gradient["divergence"])
    return sums


def _check_state(
    call: Call,
    request: ApplyRequest,
    before: LearnerState,
    after: LearnerState,
    gradients: list[Document],
) -> None:
    """Check that it can follow the state before: all but the numbers of its parameters are known."""
    steps = len(gradients) if request.rule == "sequential" else 1
    facts = {
        "version": before.version + 1,
        "optimiser_steps": before.optimiser_steps + steps,
        "spaces": before.spaces,
    }
    for name, value in facts.items():
        # 1, 1.0 and True are equal, and only one of them counts versions.
        if repr(getattr(after, name)) != repr(value):
            raise BadAnswer("update", f"the state has {name} {getattr(after, name)!r}, not {value!r}")
    for group in _GROUPS:
        check_arrays(getattr(before, group), getattr(after, group), group)
    usual, usual_before = after.step_divergence, before.step_divergence
    measured = request.policies or usual == usual_before
    if type(usual) is not float or not 0 <= usual <= FIGURE_LIMIT or not measured:
        raise BadAnswer("update", f"the state has {usual!r} as the way of a usual step")
    expected = replace(before, round_sums=sums_with(before, gradients), parameters=after.parameters)
    if request.ends_round:
        expected = end_round(request.algorithm, expected, call.round_no)
    if not _are_equal(after.kl_coefficient, expected.kl_coefficient):
        raise BadAnswer("update", f"the state has {after.kl_coefficient!r} as the weight of its KL penalty")
    for name in ("observation_moments", "return_moments", "round_sums", "target_parameters"):
        if not _are_equal(getattr(after, name), getattr(expected, name)):
            raise BadAnswer("update", f"{name} are not those of the gradients")


def _check_distances(call: Call, request: ApplyRequest, distances: Any) -> None:
    versions = [policy.version for policy in policies_in(call, request)]
    if not isinstance(distances, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in distances
    ):
        raise BadAnswer("update", "the distances of policies are not pairs")
    if [pair[0] for pair in distances] != versions:
        raise BadAnswer("update", "the distances are of other policies")
    if not all(type(far) is float and isfinite(far) and far >= 0 for _, far in distances):
        raise BadAnswer("update", "a distance of policies is not a finite number")


def _are_equal(one: Any, other: Any) -> bool:
    """Whether moments, sums of a round or parameters have the same numbers."""
    if type(one) is not type(other):
        return False
    if one is None or isinstance(one, (int, float)):
        return bool(one == other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    parts, others = (
        tuple(each)
        if isinstance(each, tuple)
        else tuple((each if isinstance(each, dict) else vars(each)).values())
        for each in (one, other)
    )
    return len(parts) == len(others) and all(map(_are_equal, parts, others))
