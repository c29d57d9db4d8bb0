"""Evaluation: whole episodes with the deterministic policy, with their own seeds and a frozen normaliser."""

from __future__ import annotations

import numpy as np

from training.calls.evaluate import EvaluateRequest
from training.engine.codec import encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache
from training.functions.rollout import as_stored, policy_of
from training.rl.environments.copies import Copies
from training.rl.environments.making import make_copies
from training.rl.networks.inference import NumpyPolicy


def evaluate(call: Call, request: EvaluateRequest, weights: bytes, warm_cache: WarmCache) -> Result:
    """Play one episode for each seed. Return the episodes' returns and lengths in the order of the seeds."""
    policy = policy_of(call, weights, warm_cache)
    key = f"{request.environment.model_dump_json()} evaluated"
    copies = warm_cache.evaluations.get(key)
    if copies is None:
        copies = warm_cache.evaluations[key] = make_copies(request.environment, 1)
    played = [_episode(copies, policy, seed) for seed in request.episode_seeds]
    returns = np.array([episode[0] for episode in played], dtype=np.float64)
    lengths = np.array([episode[1] for episode in played], dtype=np.int64)
    steps = int(lengths.sum())
    usage = Usage(
        steps=steps, inferences=steps, trials=len(played), macs=policy.macs, pictures=policy.pictures
    )
    return Result(encode({"returns": returns, "lengths": lengths}), None, usage)


def _episode(copies: Copies, policy: NumpyPolicy, seed: int) -> tuple[float, int]:
    space = copies.action_space
    seen = as_stored(copies.begin([seed]))
    over = False
    while not over:
        actions = policy.best(seen)
        applied = actions.tolist() if len(policy.action_counts) == 1 else actions
        if not policy.discrete:
            applied = np.clip(actions, space.low, space.high)
        over = any(end.over for end in copies.step(applied, seen))
    rewards = copies.rewards()[:, 0].tolist()
    total = 0.0
    # Not by `sum`, which newer Pythons round differently.
    for reward in rewards:
        total += reward
    return total, len(rewards)
