"""Environments as actors use them, and what a policy has to fit."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from training.rl import packages
from training.rl.environments.atari import AtariEnvironment, atari_game
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.model import EnvironmentSpec
from training.rl.environments.native.families import COMPARED_VERSIONS, recognise
from training.rl.spaces import Spaces

if TYPE_CHECKING:
    from training.rl.environments.copies import Copies


class UnsupportedSpace(ValueError):
    """An observation or action space that no network here can serve."""


def make(environment: EnvironmentSpec) -> Any:
    """A fresh Gymnasium environment, without the checker that would look at each step again."""
    import gymnasium

    game = atari_game(environment.id)
    if game is not None:
        return AtariEnvironment(game, environment.frame_stack)
    if environment.id not in gymnasium.registry:
        packages.load()
    return gymnasium.make(environment.id, disable_env_checker=True)


def make_copies(environment: EnvironmentSpec, count: int, cores: int = 1) -> Copies:
    """Return `count` copies that step together: natively where the numbers are known to be Gymnasium's.

    Up to `cores` copies step at the same time.
    """
    from training.rl.environments.copies import GymnasiumCopies  # gymnasium

    made = [make(environment) for _ in range(count)]
    family, _ = recognise(made[0])
    if family is None:
        return GymnasiumCopies(made, environment.id)
    from training.rl.environments.native.copies import NativeCopies  # gymnasium

    return NativeCopies(made, family, cores)


def stepped_by(environment: EnvironmentSpec) -> str:
    """Return a sentence that says who steps this environment; if Gymnasium does, with the reason.

    An environment of the catalogue is not built for it, unless its id may have been registered again.
    """
    name, entry = environment.id, ENTRIES.get(environment.id)
    if entry is not None and entry.family == "Atari":
        return f"Starling steps {name} on the emulator itself."
    native = f"Starling steps {name} itself, without Gymnasium's Python around it."
    if entry is not None and "gymnasium" not in sys.modules:
        version = importlib.metadata.version("gymnasium")
        if version in COMPARED_VERSIONS:
            return native
    made = make(environment)
    try:
        family, reason = recognise(made)
    finally:
        made.close()
    return native if family is not None else f"Gymnasium steps {name}, because {reason}."


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


@cache
def known_spaces(environment: EnvironmentSpec) -> Spaces:
    """Return `spaces_of`, found once in a process."""
    return spaces_of(environment)


def can_travel(environment: EnvironmentSpec) -> bool:
    """Whether the environment's state can be saved in mid-episode."""
    from training.rl.environments.travel import save  # gymnasium

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
