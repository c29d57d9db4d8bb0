"""The learner's work as a call: it takes the learner's state and a round's trajectories, and returns the next state
and the new policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from training import measures
from training.architectures import learner_macs
from training.batch import Batch
from training.codec import encode
from training.functions.body import Result, WarmCache
from training.learner import LearnerState
from training.messages import Call, UpdateRequest
from training.reports import Usage


def update(call: Call, request: UpdateRequest, warm_cache: WarmCache) -> Result:
    """Run an update. The payload holds `state` and `weights` as bytes, the update's report, and the ended episodes."""
    import_torch()
    state = LearnerState.decode(call.inputs[0])
    versions = range(max(0, state.version - request.staleness_limit), state.version + 1)
    batch = Batch.of(call.inputs[1:], versions, state.spaces)
    learned = request.algorithm.learn(state, batch, request.network, request.progress, call.seed)
    found = measures.take_measurements(
        request.measures,
        request.algorithm,
        request.network,
        state,
        learned,
        actors=len(call.inputs) - 1,
        seed=call.seed,
    )
    episodes = len(batch.episode_returns)
    payload = encode(
        {
            "state": learned.state.encode(),
            "weights": learned.state.actor_weights(request.network),
            "version": learned.state.version,
            "report": learned.report.model_dump(),
            "curvature": found.curvature and found.curvature.model_dump(),
            "noise_scale": found.noise_scale and found.noise_scale.model_dump(),
            "policy_shift": found.policy_shift,
            "env_steps": batch.size,
            "staleness_mean": float(np.mean(state.version - batch.versions)),
            "episodes": episodes,
            "episode_return_mean": float(np.mean(batch.episode_returns)) if episodes else None,
            "episode_length_mean": float(np.mean(batch.episode_lengths)) if episodes else None,
        }
    )
    usage = Usage(
        minibatches=learned.minibatches,
        samples=learned.samples,
        macs=learner_macs(request.network, state.spaces),
        pictures=state.spaces.pictures,
        hessian_products=found.hessian_products,
    )
    return Result(payload, None, usage)


def import_torch() -> Any:
    """Import torch with one thread: where cores are shared more threads are slower, and results must stay the same."""
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    return torch
