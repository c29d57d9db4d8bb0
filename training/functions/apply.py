"""The parameter function as a call: it takes the learner's state and gradients, and returns the next state and the new
policy. Gradients of an MLP are applied without torch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from training.algorithms.slice_gradient import apply_gradients, end_round
from training.architectures import learner_macs
from training.calls.apply import ApplyRequest, facts_of, sums_with, weights_of
from training.calls.gradient import MEASURED, PREFIX
from training.codec import Document, decode, encode
from training.functions.body import Result
from training.learner import LearnerState
from training.messages import Call
from training.reports import Usage


def apply(call: Call, request: ApplyRequest) -> Result:
    """Make the next version. The payload holds what an update's holds, and the figures of its gradients."""
    before = LearnerState.decode(call.inputs[0])
    gradients = [decode(payload) for payload in call.inputs[1:]]
    after, report = apply_gradients(
        request.algorithm,
        before,
        request.network,
        request.progress,
        [_arrays_of(gradient) for gradient in gradients],
        weights_of(request, gradients),
        request.rule,
        _measured(gradients),
    )
    after = replace(after, round_sums=sums_with(before, gradients))
    if request.ends_round:
        after = end_round(request.algorithm, after, call.round_no)
    payload = encode(
        {
            "state": after.encode(),
            "weights": after.actor_weights(request.network),
            "version": after.version,
            "report": report.model_dump(),
            "curvature": None,
            "noise_scale": None,
            "policy_shift": None,
            **facts_of(before, request, gradients),
        }
    )
    usage = Usage(
        minibatches=len(gradients) if request.rule == "sequential" else 1,
        macs=learner_macs(request.network, before.spaces),
        pictures=before.spaces.pictures,
    )
    return Result(payload, None, usage)


def _arrays_of(gradient: Document) -> Document:
    return {name.removeprefix(PREFIX): array for name, array in gradient.items() if name.startswith(PREFIX)}


def _measured(gradients: list[Document]) -> dict[str, float]:
    """Return the means of what the gradients measured."""
    return {name: float(np.mean([gradient["report"][name] for gradient in gradients])) for name in MEASURED}
