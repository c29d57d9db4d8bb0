"""Planar robots are stepped in our own way: every number is the one that Gymnasium's own robot gives."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from training.environments.making import make
from training.environments.model import EnvironmentSpec
from training.environments.planar_robots import PlanarRobot
from training.environments.travel import restore, save

ROBOTS = [f"{name}-{version}" for name in ("Hopper", "Walker2d", "HalfCheetah") for version in ("v4", "v5")]


def _pair(name: str) -> tuple[Any, Any]:
    return make(EnvironmentSpec(id=name)), gymnasium.make(name, disable_env_checker=True)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_walks_as_gymnasiums_does(name: str) -> None:
    ours, theirs = _pair(name)
    rng = np.random.default_rng(7)
    np.testing.assert_array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    ended = 0
    for step in range(1_500):
        # At first gently, so that it stays up a while; then with all its might, so that it falls in every way.
        strength = 0.2 if step < 700 else 1.0
        action = (strength * rng.uniform(-1, 1, ours.action_space.shape)).astype(np.float32)
        (seen, reward, over, cut_off, _), expected = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(seen, expected[0])
        assert seen.dtype == expected[0].dtype
        assert (reward, over, cut_off) == expected[1:4]
        if over or cut_off:
            ended += 1
            np.testing.assert_array_equal(ours.reset()[0], theirs.reset()[0])
    assert ended >= 1


@pytest.mark.parametrize("name", ROBOTS)
def test_what_one_saved_the_other_goes_on_with(name: str) -> None:
    ours, theirs = _pair(name)
    ours.reset(seed=1)
    action = np.full(ours.action_space.shape, 0.1, dtype=np.float32)
    for _ in range(5):
        ours.step(action)
    saved = save(ours)
    assert saved is not None
    theirs.reset(seed=9)
    restore(theirs, saved)
    for _ in range(5):
        got, expected = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(got[0], expected[0])
        assert got[1:4] == expected[1:4]


@pytest.mark.parametrize("name", [one for one in ROBOTS if not one.startswith("HalfCheetah")])
@pytest.mark.parametrize("joint", [1, 2, 4])
@pytest.mark.parametrize("value", [float("nan"), 1e6, -1e6, 0.0])
def test_health_is_seen_alike(name: str, joint: int, value: float) -> None:
    ours, _ = _pair(name)
    ours.reset(seed=0)
    robot = next(layer for layer in _layers(ours) if isinstance(layer, PlanarRobot))
    base = ours.unwrapped
    base.data.qpos[joint] = value
    assert robot._healthy() == bool(base.is_healthy)
    base.reset()
    base.data.qvel[joint] = value
    assert robot._healthy() == bool(base.is_healthy)


def _layers(environment: Any) -> list[Any]:
    layers = [environment]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    return layers


def test_somebody_elses_robot_keeps_its_own_step() -> None:
    from gymnasium.envs.mujoco.hopper_v5 import HopperEnv

    from training.environments.planar_robots import is_planar_robot

    class Rewarded(HopperEnv):  # type: ignore[misc]
        """Of another module, hence perhaps of another reward."""

    assert is_planar_robot(HopperEnv())
    assert not is_planar_robot(Rewarded())
