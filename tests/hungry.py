"""Environments that take more memory than anyone can know before: a package as an operator would enable it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from training.rl import packages

NAME = "hungry_envs"
_CODE = '''
import os

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

MEGABYTE = 2**20


class Growing(gymnasium.Env):
    """Keeps 32 MB more with each step."""

    observation_space, action_space = Box(-1.0, 1.0, (4,), np.float32), Discrete(2)

    def __init__(self):
        self.kept = []

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, np.float32), {}

    def step(self, action):
        self.kept.append(np.ones(32 * MEGABYTE, np.uint8))
        return self.reset()[0], 1.0, False, False, {}


class Cut(Growing):
    """Its episodes are cut off after each step, so that every observation comes twice."""

    observation_space = Box(-1.0, 1.0, (4096,), np.float32)

    def step(self, action):
        return self.reset()[0], 1.0, False, True, {}


class Huge(Growing):
    def __init__(self):
        self.kept = np.ones(3072 * MEGABYTE, np.uint8)


class Curious(Growing):
    def __init__(self):
        raise ValueError(f"SECRET_KEY is {os.environ.get('SECRET_KEY')}")


for made in (Growing, Cut, Huge, Curious):
    gymnasium.register(f"{made.__name__}-v0", entry_point=made)
'''


@contextmanager
def hungry_package(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Enables the package in this process and in those that it starts, and forgets it afterwards."""
    import gymnasium

    (folder / NAME).mkdir()
    (folder / NAME / "__init__.py").write_text(_CODE)
    patch.syspath_prepend(folder)
    patch.setenv("PYTHONPATH", str(folder))
    patch.setenv("STARLING_ENVIRONMENT_PACKAGES", NAME)
    patch.setattr(packages, "_enabled", [NAME])
    patch.setattr(packages, "_loaded", set())
    try:
        yield
    finally:
        sys.modules.pop(NAME, None)
        for name in ("Growing", "Cut", "Huge", "Curious"):
            gymnasium.registry.pop(f"{name}-v0", None)
