"""Samples a fragment: copies of an environment and a policy step together, and every step is recorded.

Each step writes its observations where they are encoded from. The rest is computed from the rewards after all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from training.calls.rollout import RolloutRequest
from training.engine.codec import encode
from training.rl.environments.copies import Copies, End
from training.rl.networks.inference import NumpyPolicy

_MUST_BE_FINITE = {
    "observations": "an observation",
    "last_observations": "an observation",
    "final_observations": "a last observation of an episode",
    "rewards": "a reward",
    "log_probs": "a log-probability",
}


class BadNumber(ValueError):
    """An environment or a policy produced a number that is not finite."""


@dataclass
class SlotEnvironments:
    """The environment copies of one slot, between two steps."""

    copies: Copies
    observations: np.ndarray
    episode_returns: np.ndarray
    episode_lengths: np.ndarray
    discounted_returns: np.ndarray

    def encode_states(self) -> bytes | None:
        states = self.copies.save()
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


@dataclass(frozen=True)
class SampledFragment:
    """A trajectory, and the process's time in the policy and in the rest of its steps."""

    document: dict[str, Any]
    environment_s: float
    inference_s: float


def sample(
    slot: SlotEnvironments, policy: NumpyPolicy, noise: np.ndarray, request: RolloutRequest
) -> SampledFragment:
    """Return a trajectory of `request.steps` steps, and step `slot` along. Raises BadNumber or ChangedSpace."""
    steps, copies = request.steps, slot.copies
    # One row more than there are steps: each step's next observation is the following step's observation.
    observations = np.empty((steps + 1, *slot.observations.shape), dtype=slot.observations.dtype)
    observations[0] = slot.observations
    taken: list[np.ndarray] = []
    outputs: list[np.ndarray] = []
    ends: list[tuple[int, End]] = []
    final_observations: list[np.ndarray] = []
    space = copies.action_space
    one_choice = len(policy.action_counts) == 1
    inference_s, began_s = 0.0, perf_counter()
    for t in range(steps):
        policy_began_s = perf_counter()
        actions, output = policy.act(observations[t], noise[t])
        inference_s += perf_counter() - policy_began_s
        taken.append(actions)
        outputs.append(output)
        # The log-probability belongs to the unclipped action that was sampled; only the environment gets it clipped.
        if policy.discrete:
            applied = actions.tolist() if one_choice else actions
        else:
            applied = np.minimum(np.maximum(actions, space.low), space.high)
        following = observations[t + 1]
        for end in copies.step(applied, following):
            ends.append((t, end))
            if end.over:
                if not end.terminated:
                    final_observations.append(following[end.n].copy())
                copies.restart(end.n, following[end.n])
    policy_began_s = perf_counter()
    actions = np.stack(taken)
    log_probs = policy.log_probs(np.stack(outputs), noise, actions)
    inference_s += perf_counter() - policy_began_s
    rewards = copies.rewards()
    discounted, episodes = _tally(slot, rewards, ends, request.discount)
    took_s = perf_counter() - began_s
    slot.observations = observations[-1].copy()
    cut_off = [(t, end.n) for t, end in ends if end.over and not end.terminated]
    document = {
        "observations": observations[:-1],
        "actions": actions,
        "log_probs": log_probs,
        "rewards": rewards.astype(np.float32),
        "terminated": _marked(rewards, [(t, end.n) for t, end in ends if end.terminated]),
        "truncated": _marked(rewards, [(t, end.n) for t, end in ends if end.truncated]),
        "discounted_returns": discounted,
        "last_observations": slot.observations,
        "final_index": np.array(cut_off, dtype=np.int32).reshape(-1, 2),
        "final_observations": np.array(final_observations, dtype=observations.dtype).reshape(
            -1, *observations.shape[2:]
        ),
        "episode_returns": np.array([episode[2] for episode in episodes], dtype=np.float64),
        "episode_lengths": np.array([episode[3] for episode in episodes], dtype=np.int32),
    }
    _require_finite(request, document)
    return SampledFragment(document, took_s - inference_s, inference_s)


def _marked(like: np.ndarray, places: list[tuple[int, int]]) -> np.ndarray:
    """Return booleans [step, copy] that are true at `places`."""
    marks = np.zeros(like.shape, dtype=np.bool_)
    for place in places:
        marks[place] = True
    return marks


def _tally(
    slot: SlotEnvironments, rewards: np.ndarray, ends: list[tuple[int, End]], discount: float
) -> tuple[np.ndarray, list[tuple[int, int, float, int]]]:
    """Return the discounted return after each step, and of each episode that ended its step, copy, return and length.

    `slot` keeps the running sums. Plain numbers are added in the order of the steps, as each sum continues the last.
    """
    discounted = np.empty(rewards.shape)
    over_at: list[list[int]] = [[] for _ in range(rewards.shape[1])]
    for t, end in ends:
        if end.over:
            over_at[end.n].append(t)
    episodes: list[tuple[int, int, float, int]] = []
    for n in range(rewards.shape[1]):
        whole, length = float(slot.episode_returns[n]), int(slot.episode_lengths[n])
        running = float(slot.discounted_returns[n])
        column = rewards[:, n].tolist()
        after: list[float] = []
        begin = 0
        for t, over in [*((t, True) for t in over_at[n]), (len(column) - 1, False)]:
            for reward in column[begin : t + 1]:
                whole += reward
                running = running * discount + reward
                after.append(running)
            length += t + 1 - begin
            begin = t + 1
            if over:
                episodes.append((t, n, whole, length))
                whole = running = 0.0
                length = 0
        discounted[:, n] = after
        slot.episode_returns[n], slot.episode_lengths[n], slot.discounted_returns[n] = whole, length, running
    return discounted, sorted(episodes)


def _require_finite(request: RolloutRequest, document: dict[str, np.ndarray]) -> None:
    """Raise BadNumber at the step where a non-finite number appears, so that the message can name it."""
    for name, what in _MUST_BE_FINITE.items():
        array = document[name]
        if array.dtype.kind == "f" and not np.isfinite(array.sum(dtype=np.float64)):
            step = int(np.argwhere(~np.isfinite(array))[0][0])
            if name == "final_observations":
                step = int(document["final_index"][step][0])
            elif name == "last_observations":
                step = request.steps
            raise BadNumber(
                f"{request.environment.id} gave {what} that is not a finite number at step {step}"
            )
