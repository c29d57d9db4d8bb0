"""Environments as actors use them, and what a policy has to fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.environments.catalogue import ENTRIES
from training.environments.model import EnvironmentSpec, Spaces


class UnsupportedSpace(ValueError):
    """An observation or action space that no network here can serve."""


def make(environment: EnvironmentSpec) -> Any:
    """A fresh Gymnasium environment, without the checker that would look at each step again."""
    import gymnasium

    return gymnasium.make(environment.id, disable_env_checker=True)


def spaces_of(environment: EnvironmentSpec) -> Spaces:
    """What the environment shows and takes; from the catalogue, or else from a copy made for the purpose."""
    entry = ENTRIES.get(environment.id)
    if entry is not None:
        # Gymnasium keeps limits in float32.
        limit = (float(np.float32(entry.action_limit)),) * entry.action_size
        return Spaces(entry.observation_size, entry.action_count, tuple(-x for x in limit), limit)
    made = make(environment)
    try:
        return measured_spaces(environment.id, made)
    finally:
        made.close()


def can_travel(environment: EnvironmentSpec) -> bool:
    """Whether the environment's state can be saved in mid-episode."""
    from training.environments.travel import save

    if environment.id in ENTRIES:
        return True
    made = make(environment)
    try:
        made.reset(seed=0)
        return save(made) is not None
    finally:
        made.close()


def measured_spaces(name: str, made: Any) -> Spaces:
    """What `made` shows and takes, or UnsupportedSpace in words."""
    from gymnasium.spaces import Box, Discrete

    seen, done = made.observation_space, made.action_space
    if not isinstance(seen, Box) or len(seen.shape) != 1:
        raise UnsupportedSpace(
            f"{name} shows {seen}; only one-dimensional Box observations can be learned from"
        )
    if isinstance(done, Discrete):
        if int(done.start) != 0:
            raise UnsupportedSpace(
                f"{name} counts its actions from {done.start}; only counting from 0 is supported"
            )
        return Spaces(int(seen.shape[0]), int(done.n))
    if isinstance(done, Box) and len(done.shape) == 1 and bool(np.isfinite([done.low, done.high]).all()):
        low, high = tuple(map(float, done.low)), tuple(map(float, done.high))
        return Spaces(int(seen.shape[0]), None, low, high)
    raise UnsupportedSpace(
        f"{name} takes {done}; only Discrete and bounded one-dimensional Box actions are supported"
    )
