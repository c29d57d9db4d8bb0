"""Evaluation: whole episodes with the deterministic policy, with their own seeds and a frozen normaliser."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.codec import encode
from training.environments.making import make
from training.functions.body import Result, WarmCache
from training.functions.rollout import as_stored, policy_of
from training.inference import NumpyPolicy
from training.messages import Call, EvaluateRequest
from training.reports import Usage


def evaluate(call: Call, request: EvaluateRequest, weights: bytes, warm_cache: WarmCache) -> Result:
    """Play one episode for each seed. Return the episodes' returns and lengths in the order of the seeds."""
    policy = policy_of(call, weights, warm_cache)
    key = f"{request.environment.model_dump_json()} evaluated"
    environment = warm_cache.evaluations.get(key)
    if environment is None:
        environment = warm_cache.evaluations[key] = make(request.environment)
    played = [_episode(environment, policy, seed) for seed in request.episode_seeds]
    returns = np.array([episode[0] for episode in played], dtype=np.float64)
    lengths = np.array([episode[1] for episode in played], dtype=np.int64)
    steps = int(lengths.sum())
    usage = Usage(
        env_steps=steps, inferences=steps, episodes=len(played), macs=policy.macs, pictures=policy.pictures
    )
    return Result(encode({"returns": returns, "lengths": lengths}), None, usage)


def _episode(environment: Any, policy: NumpyPolicy, seed: int) -> tuple[float, int]:
    seen, _ = environment.reset(seed=seed)
    space = environment.action_space
    total, length, over = 0.0, 0, False
    while not over:
        action = policy.best(as_stored(seen)[None])[0]
        if not policy.discrete:
            action = np.clip(action, space.low, space.high)
        seen, reward, terminated, truncated, _ = environment.step(action)
        total += float(reward)
        length += 1
        over = bool(terminated or truncated)
    return total, length
