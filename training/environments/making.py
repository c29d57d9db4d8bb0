"""Environments as actors use them, and what a policy has to fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.environments.catalogue import ENTRIES
from training.environments.model import EnvironmentSpec
from training.environments.spaces import Spaces


class UnsupportedSpace(ValueError):
    """An observation or action space that no network here can serve."""


def make(environment: EnvironmentSpec) -> Any:
    """A fresh Gymnasium environment, without the checker that would look at each step again."""
    import gymnasium

    from training.environments import packages
    from training.environments.atari import AtariEnvironment, atari_game
    from training.environments.planar_robots import PlanarRobot, is_planar_robot

    game = atari_game(environment.id)
    if game is not None:
        return AtariEnvironment(game, environment.frame_stack)
    if environment.id not in gymnasium.registry:
        packages.load()
    made: Any = gymnasium.make(environment.id, disable_env_checker=True)
    if is_planar_robot(made.unwrapped):
        innermost = made
        while isinstance(innermost.env, gymnasium.Wrapper):
            innermost = innermost.env
        innermost.env = PlanarRobot(innermost.env)
    return made


def spaces_of(environment: EnvironmentSpec) -> Spaces:
    """What the environment shows and takes; from the catalogue, or else from a copy made for the purpose."""
    entry = ENTRIES.get(environment.id)
    if entry is not None:
        return entry.spaces(environment.frame_stack)
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
    from gymnasium.spaces import Box

    seen = made.observation_space
    if not isinstance(seen, Box):
        raise UnsupportedSpace(f"{name} shows {seen}; only Box observations can be learned from")
    shape = tuple(int(size) for size in seen.shape)
    if len(shape) == 3 and seen.dtype == np.uint8:
        if shape[1] != shape[2]:
            raise UnsupportedSpace(
                f"{name} shows pictures of {shape}; only square ones, channels first, are supported"
            )
    elif len(shape) != 1:
        raise UnsupportedSpace(
            f"{name} shows arrays of {shape}; only vectors and pictures can be learned from"
        )
    return Spaces(shape, *_actions(name, made.action_space))


def _actions(name: str, space: Any) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    from gymnasium.spaces import Box, Discrete, MultiDiscrete

    if isinstance(space, Discrete) and int(space.start) == 0:
        return (int(space.n),), (), ()
    if isinstance(space, MultiDiscrete) and space.nvec.ndim == 1 and not space.start.any():
        return tuple(map(int, space.nvec)), (), ()
    if isinstance(space, Box) and len(space.shape) == 1 and bool(np.isfinite([space.low, space.high]).all()):
        return (), tuple(map(float, space.low)), tuple(map(float, space.high))
    raise UnsupportedSpace(
        f"{name} takes {space}; only Discrete and MultiDiscrete counted from 0, and bounded Box vectors, are supported"
    )
