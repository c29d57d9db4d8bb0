"""An actor's work: sample a fragment with one version of the policy, going on from where the slot was.

Needs numpy only. Several environment copies advance together so that one small matrix product serves them all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from training.codec import decode, encode
from training.environments.making import make
from training.environments.travel import restore, save
from training.functions.run import Result, Warmth
from training.inference import NumpyPolicy
from training.messages import Call, RolloutRequest, Usage
from training.seeds import derive


class BadNumber(ValueError):
    """An environment or a policy produced something that is not a finite number."""


@dataclass
class SlotEnvironments:
    """The environment copies of one slot, between two steps. `ended_as` is the hash of the state they left."""

    copies: list[Any]
    observations: np.ndarray
    episode_returns: np.ndarray
    episode_lengths: np.ndarray
    discounted_returns: np.ndarray
    ended_as: str = ""

    def saved(self) -> bytes | None:
        states = [save(copy) for copy in self.copies]
        if any(state is None for state in states):
            return None
        return encode(
            {
                "states": states,
                "observations": self.observations,
                "episode_returns": self.episode_returns,
                "episode_lengths": self.episode_lengths,
                "discounted_returns": self.discounted_returns,
            }
        )


def rollout(call: Call, request: RolloutRequest, weights: bytes, warmth: Warmth) -> Result:
    """`steps` steps of each copy: a trajectory, and the state in which the slot's next call begins."""
    policy = policy_of(call, weights, warmth)
    slot = _environments(call, request, warmth)
    noise = policy.draw_noise(
        np.random.Generator(np.random.PCG64(call.seed)), request.steps, request.environments
    )
    document = _sample(slot, policy, noise, request)
    state = slot.saved()
    if state is not None:
        slot.ended_as = hashlib.sha256(state).hexdigest()
    document["version"] = policy.version
    document["slot"] = request.slot
    steps = request.steps * request.environments
    usage = Usage(env_steps=steps, inferences=steps, episodes=len(document["episode_returns"]))
    return Result(encode(document), state, usage)


def _sample(
    slot: SlotEnvironments, policy: NumpyPolicy, noise: np.ndarray, request: RolloutRequest
) -> dict[str, Any]:
    steps, copies = request.steps, request.environments
    size = slot.observations.shape[1]
    observations = np.empty((steps, copies, size), dtype=np.float32)
    rewards = np.empty((steps, copies), dtype=np.float32)
    terminated = np.zeros((steps, copies), dtype=np.bool_)
    truncated = np.zeros((steps, copies), dtype=np.bool_)
    discounted = np.empty((steps, copies), dtype=np.float64)
    log_probs = np.empty((steps, copies), dtype=np.float32)
    taken: list[np.ndarray] = []
    final_index: list[tuple[int, int]] = []
    final_observations: list[np.ndarray] = []
    returns: list[float] = []
    lengths: list[int] = []
    low, high = _limits(slot.copies[0], policy.discrete)
    for t in range(steps):
        observations[t] = slot.observations
        actions, log_probs[t] = policy.sample(slot.observations, noise[t])
        taken.append(actions)
        # The unclipped action is what was sampled and what its log-probability is of; only the world sees it clipped.
        applied = actions.tolist() if policy.discrete else np.minimum(np.maximum(actions, low), high)
        for n, copy in enumerate(slot.copies):
            seen, reward, terminated[t, n], truncated[t, n], _ = copy.step(applied[n])
            rewards[t, n] = reward
            slot.episode_returns[n] += reward
            slot.episode_lengths[n] += 1
            slot.discounted_returns[n] = slot.discounted_returns[n] * request.discount + reward
            discounted[t, n] = slot.discounted_returns[n]
            if terminated[t, n] or truncated[t, n]:
                if not terminated[t, n]:
                    final_index.append((t, n))
                    final_observations.append(np.asarray(seen, dtype=np.float32))
                returns.append(float(slot.episode_returns[n]))
                lengths.append(int(slot.episode_lengths[n]))
                slot.episode_returns[n] = slot.discounted_returns[n] = 0.0
                slot.episode_lengths[n] = 0
                seen, _ = copy.reset()
            slot.observations[n] = seen
    _require_finite(request, observations, rewards, log_probs)
    return {
        "observations": observations,
        "actions": np.stack(taken),
        "log_probs": log_probs,
        "rewards": rewards,
        "terminated": terminated,
        "truncated": truncated,
        "discounted_returns": discounted,
        "last_observations": slot.observations,
        "final_index": np.array(final_index, dtype=np.int32).reshape(-1, 2),
        "final_observations": np.array(final_observations, dtype=np.float32).reshape(-1, size),
        "episode_returns": np.array(returns, dtype=np.float64),
        "episode_lengths": np.array(lengths, dtype=np.int32),
    }


def _require_finite(request: RolloutRequest, observations: Any, rewards: Any, log_probs: Any) -> None:
    """Not-a-numbers are found where they arise: nothing learns from them and the message can name the step."""
    for what, array in (
        ("an observation", observations),
        ("a reward", rewards),
        ("a log-probability", log_probs),
    ):
        if not np.isfinite(array.sum(dtype=np.float64)):
            step = int(np.argwhere(~np.isfinite(array))[0][0])
            raise BadNumber(
                f"{request.environment.id} gave {what} that is not a finite number at step {step}"
            )


def _limits(copy: Any, discrete: bool) -> tuple[Any, Any]:
    return (None, None) if discrete else (copy.action_space.low, copy.action_space.high)


def policy_of(call: Call, weights: bytes, warmth: Warmth) -> NumpyPolicy:
    """The policy in `weights`, kept from the last call of the same version."""
    key = call.weights.sha256 if call.weights is not None else hashlib.sha256(weights).hexdigest()
    if key not in warmth.policies:
        warmth.policies.clear()
        warmth.policies[key] = NumpyPolicy(weights)
    policy: NumpyPolicy = warmth.policies[key]
    return policy


def _key(request: RolloutRequest) -> str:
    return f"{request.environment.id}/{request.environments}/{request.slot}"


def _environments(call: Call, request: RolloutRequest, warmth: Warmth) -> SlotEnvironments:
    """The slot's copies, in the state that the call brings: warm if that is how this process left them."""
    warm: SlotEnvironments | None = warmth.environments.pop(_key(request), None)
    wanted = "" if call.env_state is None else hashlib.sha256(call.env_state).hexdigest()
    if warm is None or not wanted or warm.ended_as != wanted:
        copies = (
            warm.copies
            if warm is not None
            else [make(request.environment) for _ in range(request.environments)]
        )
        warm = _restored(copies, call.env_state) if call.env_state is not None else _reset(copies, call)
    # Until the fragment is done the copies are in no known state: a call that fails must not leave them as warm.
    warm.ended_as = ""
    warmth.environments[_key(request)] = warm
    return warm


def _reset(copies: list[Any], call: Call) -> SlotEnvironments:
    seen = [copy.reset(seed=derive(call.seed, "reset", n) % 2**32)[0] for n, copy in enumerate(copies)]
    n = len(copies)
    return SlotEnvironments(
        copies, np.array(seen, dtype=np.float32), np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n)
    )


def _restored(copies: list[Any], state: bytes) -> SlotEnvironments:
    document = decode(state)
    if len(document["states"]) != len(copies):
        raise ValueError(
            f"the state holds {len(document['states'])} environments; the call asks for {len(copies)}"
        )
    for copy, saved in zip(copies, document["states"], strict=True):
        restore(copy, saved)
    return SlotEnvironments(
        copies,
        document["observations"].copy(),
        document["episode_returns"].copy(),
        document["episode_lengths"].copy(),
        document["discounted_returns"].copy(),
    )
