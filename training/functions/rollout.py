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
from training.functions.body import Result, Warmth
from training.inference import NumpyPolicy
from training.messages import Call, RolloutRequest
from training.reports import Usage
from training.seeds import derive

# Each worker keeps this many slots' environments warm; restoring others takes well under a millisecond.
_WARM_AT_MOST = 32


class BadNumber(ValueError):
    """An environment or a policy produced something that is not a finite number."""


class ChangedSpace(ValueError):
    """An environment began to show something of another shape."""


@dataclass
class SlotEnvironments:
    """The environment copies of one slot, between two steps."""

    copies: list[Any]
    observations: np.ndarray
    episode_returns: np.ndarray
    episode_lengths: np.ndarray
    discounted_returns: np.ndarray

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
    # What cannot be saved is kept under no name: its copies are good for a reset, as in any other process.
    name = "" if state is None else hashlib.sha256(state).hexdigest()
    warmth.environments[_kind(request)][name] = slot
    document["version"] = policy.version
    document["slot"] = request.slot
    steps = request.steps * request.environments
    usage = Usage(
        env_steps=steps,
        inferences=steps,
        episodes=len(document["episode_returns"]),
        macs=policy.macs,
        pictures=policy.pictures,
    )
    return Result(encode(document), state, usage)


def _sample(
    slot: SlotEnvironments, policy: NumpyPolicy, noise: np.ndarray, request: RolloutRequest
) -> dict[str, Any]:
    steps, copies = request.steps, request.environments
    shape, dtype = slot.observations.shape[1:], slot.observations.dtype
    observations = np.empty((steps, copies, *shape), dtype=dtype)
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
    space = slot.copies[0].action_space
    one_choice = len(policy.action_counts) == 1
    for t in range(steps):
        observations[t] = slot.observations
        actions, log_probs[t] = policy.sample(slot.observations, noise[t])
        taken.append(actions)
        # The unclipped action is what was sampled and what its log-probability is of; only the world sees it clipped.
        if policy.discrete:
            applied = actions.tolist() if one_choice else actions
        else:
            applied = np.minimum(np.maximum(actions, space.low), space.high)
        for n, copy in enumerate(slot.copies):
            seen, reward, over, cut_off, info = copy.step(applied[n])
            rewards[t, n] = reward
            # A lost life ends the episode for the learner; the game goes on.
            terminated[t, n] = over or info.get("life_lost", False)
            truncated[t, n] = cut_off
            slot.episode_returns[n] += reward
            slot.episode_lengths[n] += 1
            slot.discounted_returns[n] = slot.discounted_returns[n] * request.discount + reward
            discounted[t, n] = slot.discounted_returns[n]
            if over or cut_off:
                if not terminated[t, n]:
                    final_index.append((t, n))
                    final_observations.append(np.asarray(seen, dtype=dtype))
                returns.append(float(slot.episode_returns[n]))
                lengths.append(int(slot.episode_lengths[n]))
                slot.episode_returns[n] = slot.discounted_returns[n] = 0.0
                slot.episode_lengths[n] = 0
                seen, _ = copy.reset()
            if np.shape(seen) != shape:
                raise ChangedSpace(
                    f"{request.environment.id} showed {np.shape(seen)} at step {t} and {shape} before"
                )
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
        "final_observations": np.array(final_observations, dtype=dtype).reshape(-1, *shape),
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
        if array.dtype.kind == "f" and not np.isfinite(array.sum(dtype=np.float64)):
            step = int(np.argwhere(~np.isfinite(array))[0][0])
            raise BadNumber(
                f"{request.environment.id} gave {what} that is not a finite number at step {step}"
            )


def policy_of(call: Call, weights: bytes, warmth: Warmth) -> NumpyPolicy:
    """The policy in `weights`, kept from the last call of the same version."""
    key = call.weights.sha256 if call.weights is not None else hashlib.sha256(weights).hexdigest()
    if key not in warmth.policies:
        warmth.policies.clear()
        warmth.policies[key] = NumpyPolicy(weights)
    policy: NumpyPolicy = warmth.policies[key]
    return policy


def _environments(call: Call, request: RolloutRequest, warmth: Warmth) -> SlotEnvironments:
    """The slot's copies, in the state that the call brings: warm if this process left some so, else restored.

    Copies are taken out of the warm ones, and come back when the fragment is done: a call that fails in the middle
    leaves none in an unknown state. Which slot they served last does not matter, so a few serve any number of slots.
    """
    wanted = "" if call.env_state is None else hashlib.sha256(call.env_state).hexdigest()
    kept = warmth.environments.setdefault(_kind(request), {})
    warm: SlotEnvironments | None = kept.pop(wanted, None)
    if warm is not None and wanted:
        return warm
    if warm is None and len(kept) >= _WARM_AT_MOST:
        warm = kept.pop(next(iter(kept)))
    copies = (
        warm.copies if warm is not None else [make(request.environment) for _ in range(request.environments)]
    )
    return _reset(copies, call) if call.env_state is None else _restored(copies, call.env_state)


def _kind(request: RolloutRequest) -> str:
    """Which environments can stand in for each other."""
    return f"{request.environment.model_dump_json()} × {request.environments}"


def _reset(copies: list[Any], call: Call) -> SlotEnvironments:
    seen = [copy.reset(seed=derive(call.seed, "reset", n) % 2**32)[0] for n, copy in enumerate(copies)]
    n = len(copies)
    return SlotEnvironments(copies, as_seen(seen), np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n))


def as_seen(observations: Any) -> np.ndarray:
    """Observations as they are stored and sent: bytes of pictures stay bytes, all else is float32."""
    array = np.asarray(observations)
    return array if array.dtype == np.uint8 else array.astype(np.float32)


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
