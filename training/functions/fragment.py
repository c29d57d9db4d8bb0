"""Samples a fragment: copies of an environment and a policy step together, and every step is recorded.

Numbers and lists are collected first and become arrays once, at the end, because writing single numbers into an array
takes several times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from training.codec import encode
from training.environments.travel import save
from training.inference import NumpyPolicy
from training.messages import RolloutRequest

_MUST_BE_FINITE = {
    "observations": "an observation",
    "last_observations": "an observation",
    "final_observations": "a last observation of an episode",
    "rewards": "a reward",
    "log_probs": "a log-probability",
}


class BadNumber(ValueError):
    """An environment or a policy produced a number that is not finite."""


class ChangedSpace(ValueError):
    """An environment returned an observation of another shape than before."""


@dataclass
class SlotEnvironments:
    """The environment copies of one slot, between two steps."""

    copies: list[Any]
    observations: np.ndarray
    episode_returns: np.ndarray
    episode_lengths: np.ndarray
    discounted_returns: np.ndarray

    def encode_states(self) -> bytes | None:
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
    steps = request.steps
    # One row more than there are steps: each step's next observation is the following step's observation.
    observations = np.empty((steps + 1, *slot.observations.shape), dtype=slot.observations.dtype)
    observations[0] = slot.observations
    log_probs = np.empty((steps, request.environments), dtype=np.float32)
    taken: list[np.ndarray] = []
    ended = _EndedEpisodes()
    courses = [_EnvironmentCopy(slot, n, request, ended) for n in range(request.environments)]
    space = slot.copies[0].action_space
    one_choice = len(policy.action_counts) == 1
    inference_s, began_s = 0.0, perf_counter()
    for t in range(steps):
        asked_s = perf_counter()
        actions, log_probs[t] = policy.sample(observations[t], noise[t])
        inference_s += perf_counter() - asked_s
        taken.append(actions)
        # The log-probability belongs to the unclipped action that was sampled; only the environment gets it clipped.
        if policy.discrete:
            applied = actions.tolist() if one_choice else actions
        else:
            applied = np.minimum(np.maximum(actions, space.low), space.high)
        following = observations[t + 1]
        for course, action in zip(courses, applied, strict=True):
            course.step(t, action, following)
    took_s = perf_counter() - began_s
    for course in courses:
        course.leave(slot)
    slot.observations = observations[-1].copy()
    document = {
        "observations": observations[:-1],
        "actions": np.stack(taken),
        "log_probs": log_probs,
        "rewards": _beside([course.rewards for course in courses], np.float32),
        "terminated": _beside([course.terminated for course in courses], np.bool_),
        "truncated": _beside([course.truncated for course in courses], np.bool_),
        "discounted_returns": _beside([course.discounted for course in courses], np.float64),
        "last_observations": slot.observations,
        **ended.document(slot.observations),
    }
    _require_finite(request, document)
    return SampledFragment(document, took_s - inference_s, inference_s)


def _beside(columns: list[list[Any]], dtype: Any) -> np.ndarray:
    """Return the copies' numbers as [step, copy]."""
    return np.ascontiguousarray(np.array(columns, dtype=dtype).T)


@dataclass
class _EndedEpisodes:
    """Episodes that ended in a fragment, in order of their end, and the states that a time limit cut off."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    final_index: list[tuple[int, int]] = field(default_factory=list)
    final_observations: list[Any] = field(default_factory=list)

    def document(self, like: np.ndarray) -> dict[str, np.ndarray]:
        return {
            "final_index": np.array(self.final_index, dtype=np.int32).reshape(-1, 2),
            "final_observations": np.array(self.final_observations, dtype=like.dtype).reshape(
                -1, *like.shape[1:]
            ),
            "episode_returns": np.array(self.returns, dtype=np.float64),
            "episode_lengths": np.array(self.lengths, dtype=np.int32),
        }


class _EnvironmentCopy:
    """One copy's way through a fragment."""

    def __init__(
        self, slot: SlotEnvironments, n: int, request: RolloutRequest, ended: _EndedEpisodes
    ) -> None:
        self._environment = slot.copies[n]
        self._n = n
        self._shape = slot.observations.shape[1:]
        self._dtype = slot.observations.dtype
        self._discount = request.discount
        self._id = request.environment.id
        self._ended = ended
        self._episode_return = float(slot.episode_returns[n])
        self._episode_length = int(slot.episode_lengths[n])
        self._discounted_return = float(slot.discounted_returns[n])
        self.rewards: list[float] = []
        self.terminated: list[bool] = []
        self.truncated: list[bool] = []
        self.discounted: list[float] = []

    def step(self, t: int, action: Any, following: np.ndarray) -> None:
        """Take `action` at step `t`, and write the next observation into this copy's row of `following`."""
        seen, reward, over, cut_off, info = self._environment.step(action)
        reward = float(reward)
        # A lost life ends the episode for the learner; the game goes on.
        terminated = bool(over or info.get("life_lost", False))
        self.rewards.append(reward)
        self.terminated.append(terminated)
        self.truncated.append(bool(cut_off))
        self._episode_return += reward
        self._episode_length += 1
        self._discounted_return = self._discounted_return * self._discount + reward
        self.discounted.append(self._discounted_return)
        if over or cut_off:
            if not terminated:
                self._ended.final_index.append((t, self._n))
                self._ended.final_observations.append(np.asarray(seen, dtype=self._dtype))
            seen = self._restart()
        if getattr(seen, "shape", None) != self._shape and np.shape(seen) != self._shape:
            raise ChangedSpace(f"{self._id} showed {np.shape(seen)} at step {t} and {self._shape} before")
        following[self._n] = seen

    def leave(self, slot: SlotEnvironments) -> None:
        """Store the episode's state for the slot's next call."""
        slot.episode_returns[self._n] = self._episode_return
        slot.episode_lengths[self._n] = self._episode_length
        slot.discounted_returns[self._n] = self._discounted_return

    def _restart(self) -> Any:
        self._ended.returns.append(self._episode_return)
        self._ended.lengths.append(self._episode_length)
        self._episode_return = self._discounted_return = 0.0
        self._episode_length = 0
        return self._environment.reset()[0]


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
