"""The learner's work as a call: it takes the learner's state and a round's trajectories, and returns the next state
and the new policy. An MLP is learned without torch.
"""

from __future__ import annotations

from training.calls.update import UpdateRequest, batch_of, facts_of
from training.engine.codec import encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache
from training.rl.learner import LearnerState
from training.rl.measures import measures


def update(call: Call, request: UpdateRequest, warm_cache: WarmCache) -> Result:
    """Run an update. The payload holds `state` and `weights` as bytes, the update's report, and the ended episodes."""
    state = LearnerState.decode(call.inputs[0])
    batch = batch_of(call, request, state)
    learned = request.algorithm.learn(state, batch, request.network, request.progress, call.seed)
    measured = measures.take_measurements(
        request.measures,
        request.algorithm,
        request.network,
        state,
        learned,
        actors=len(call.inputs) - 1,
        seed=call.seed,
    )
    payload = encode(
        {
            "state": learned.state.encode(),
            "weights": learned.state.actor_weights(request.network),
            "version": learned.state.version,
            "report": learned.report.model_dump(),
            "curvature": measured.curvature and measured.curvature.model_dump(),
            "noise_scale": measured.noise_scale and measured.noise_scale.model_dump(),
            "policy_shift": measured.policy_shift,
            **facts_of(state, batch),
        }
    )
    usage = Usage(
        minibatches=learned.minibatches,
        samples=learned.samples,
        macs=request.network.learner_macs(state.spaces),
        pictures=state.spaces.pictures,
        hessian_products=measured.hessian_products,
    )
    return Result(payload, None, usage)
