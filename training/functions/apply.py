"""The parameter function as a call: it takes the learner's state and gradients, and returns the next state and the new
policy. Gradients of an MLP are applied without torch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from training.calls.apply import (
    ApplyRequest,
    facts_of,
    gradients_in,
    policies_in,
    sums_with,
    weights_of,
)
from training.calls.gradient import MEASURED, PREFIX, mean_figures
from training.engine.codec import Document, encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result
from training.loops.aggregation import policy_distance, usual_step
from training.rl.algorithms.slice_gradient import apply_gradients, end_round
from training.rl.learner import LearnerState
from training.rl.measures.policy_shift import divergence
from training.rl.networks import Parameters


def apply(call: Call, request: ApplyRequest) -> Result:
    """Make the next version. The payload holds what an update's holds, and the figures of its gradients."""
    before = LearnerState.decode(call.inputs[0])
    gradients = gradients_in(call, request)
    after, report = apply_gradients(
        request.algorithm,
        before,
        request.network,
        request.progress,
        [_arrays_of(gradient) for gradient in gradients],
        weights_of(request, gradients),
        request.rule,
        mean_figures(gradients, "report", MEASURED),
    )
    after = replace(after, round_sums=sums_with(before, gradients))
    distances: list[list[float]] = []
    if request.policies:
        after, distances = _distances(call, request, before, after, gradients)
    if request.ends_round:
        after = end_round(request.algorithm, after, call.round_no)
    payload = encode(
        {
            "state": after.encode(),
            "weights": after.actor_weights(request.network),
            "parameters": after.for_gradients().encode(),
            "version": after.version,
            "report": report.model_dump(),
            "curvature": None,
            "noise_scale": None,
            "policy_shift": None,
            **facts_of(before, request, gradients),
            **({"distances": distances} if request.policies else {}),
        }
    )
    usage = Usage(
        minibatches=len(gradients) if request.rule == "sequential" else 1,
        macs=request.network.learner_macs(before.spaces),
        pictures=before.spaces.pictures,
    )
    return Result(payload, None, usage)


def _distances(
    call: Call, request: ApplyRequest, before: LearnerState, after: LearnerState, gradients: list[Document]
) -> tuple[LearnerState, list[list[float]]]:
    """Return the state, which knows now how far its last step was, and how many usual steps each of the call's
    policies is from it, with its version.
    """
    states = np.concatenate([gradient["states"] for gradient in gradients])

    def divergence_from(older: Parameters) -> float:
        return divergence(request.network, before.spaces, older, after.parameters, states)

    usual = usual_step(before.step_divergence, divergence_from(before.parameters))
    return replace(after, step_divergence=usual), [
        [policy.version, policy_distance(divergence_from(policy.parameters), usual)]
        for policy in policies_in(call, request)
    ]


def _arrays_of(gradient: Document) -> Document:
    return {name.removeprefix(PREFIX): array for name, array in gradient.items() if name.startswith(PREFIX)}
