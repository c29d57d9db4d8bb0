"""A learner's work as a call: it takes one version's parameters and a slice of trajectories, and returns a gradient.

The gradient of an MLP needs no torch.
"""

from __future__ import annotations

import numpy as np

from training.calls.gradient import (
    MOMENTS,
    PREFIX,
    GradientRequest,
    reported_facts,
    slice_facts,
    trajectories_of,
)
from training.engine.codec import Document, decode, encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result
from training.rl.algorithms.slice_gradient import Pass, SliceGradient, gradient_of
from training.rl.batch import Batch
from training.rl.learner import LearnerState, PublishedPolicy


def gradient(call: Call, request: GradientRequest, weights: bytes) -> Result:
    """Return the gradient's document, and as the state what the first pass keeps for the later ones, if anything."""
    state = LearnerState.decode(weights)
    trajectories = trajectories_of(call, request)
    policies = [PublishedPolicy.decode(data) for data in call.inputs[len(trajectories) :]]
    batch = Batch.of(trajectories, range(state.version + 1), state.spaces)
    computed = gradient_of(
        request.algorithm,
        state,
        batch,
        request.network,
        request.progress,
        Pass(
            request.pass_no,
            request.passes,
            call.seed,
            _start(call, request),
        ),
        request.truncation,
        policies[: request.policies],
        policies[request.policies :],
    )
    usage = Usage(
        minibatches=1,
        samples=batch.size,
        macs=request.network.learner_macs(state.spaces),
        pictures=state.spaces.pictures,
    )
    start = encode(computed.start) if computed.start else None
    return Result(encode(_document(call, request, computed)), start, usage)


def _start(call: Call, request: GradientRequest) -> Document | None:
    """Return what the first pass kept, if anything."""
    return None if call.slot_state is None or request.pass_no == 1 else decode(call.slot_state)


def _document(call: Call, request: GradientRequest, computed: SliceGradient) -> Document:
    facts = reported_facts(slice_facts(call, request), last=computed.is_last)
    document: Document = {
        "version": call.weights.version if call.weights is not None else 0,
        "pass_no": request.pass_no,
        "last": computed.is_last,
        **facts,
        "length": computed.importance["weight"] if request.truncation.rule == "mean_step" else 1.0,
        "importance": computed.importance,
        "report": computed.report,
        "divergence": computed.divergence,
        "device": computed.device,
        **{f"{PREFIX}{name}": array for name, array in computed.gradient.items()},
    }
    if request.states:
        samples = len(computed.observations)
        chosen = np.linspace(0, samples - 1, min(request.states, samples)).astype(np.int64)
        document["states"] = computed.observations[chosen]
    for name, moments in zip(MOMENTS, (computed.observation_moments, computed.return_moments), strict=True):
        if moments is not None:
            document[f"{name}_count"] = moments.count
            document[f"{name}_mean"] = moments.mean
            document[f"{name}_variance"] = moments.variance
    return document
