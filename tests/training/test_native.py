"""Environments stepped natively: every number is the one that Gymnasium's own environment gives, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import training.rl.environments.native.copies as native_copies
from tests.training.inline_platform import InlinePlatform
from tests.training.native_tasks import (
    TASKS,
    arguments_of,
    begin,
    gymnasiums,
    native,
    played,
    random_actions,
)
from tests.training.runs import final_learner
from tests.training.specs import tiny
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.making import make_copies
from training.rl.environments.model import EnvironmentSpec
from training.rl.environments.native.copies import NativeCopies
from training.rl.environments.native.families import FAMILIES


@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=4)
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_copies_go_as_gymnasiums_do_whatever_the_arguments(task: str, data: Any, seed: int) -> None:
    arguments = data.draw(arguments_of(task))
    ours, theirs = native(task, **arguments), gymnasiums(task, **arguments)
    seen, expected = begin(ours, seed), begin(theirs, seed)
    assert seen.tobytes() == expected.tobytes()
    actions = random_actions(ours, data.draw(st.sampled_from([0, 1, 64, 80])), seed)
    assert played(ours, actions, seen) == played(theirs, actions, expected)
    assert ours.save() == theirs.save()


@pytest.mark.parametrize("task", TASKS)
def test_one_way_goes_on_with_what_the_other_saved(task: str) -> None:
    """In mid-run from Gymnasium to native stepping and back, against Gymnasium alone."""
    limit = {"max_episode_steps": 25}
    ours, theirs, alone = native(task, **limit), gymnasiums(task, **limit), gymnasiums(task, **limit)
    expected = begin(alone, 5)
    begin(theirs, 5)
    begin(ours, 99)
    seen, turns = expected.copy(), [theirs, ours]
    actions = random_actions(alone, 2 * 64 + 30, 3)
    for turn, part in enumerate(np.split(actions, [5, 64, 128, 140, 150])):
        stepping, other = turns[turn % 2], turns[(turn + 1) % 2]
        assert played(stepping, part, seen) == played(alone, part, expected)
        states = stepping.save()
        assert states == alone.save()
        other.restore([state for state in states if state is not None])


@pytest.mark.parametrize("task", ["Humanoid-v5", "Ant-v4", "CartPole-v1"])
@pytest.mark.parametrize(("count", "cores"), [(4, 2), (5, 3), (1, 2)])
def test_several_cores_give_the_same(
    task: str, count: int, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_copies, "WORTH_THREADS_S", 0.0)
    environment = EnvironmentSpec(id=task)
    together, alone = make_copies(environment, count, cores), make_copies(environment, count)
    seen, expected = begin(together, 5), begin(alone, 5)
    actions = random_actions(alone, 90, 3)
    assert played(together, actions, seen) == played(alone, actions, expected)
    assert together.save() == alone.save()


def test_what_goes_wrong_on_another_core_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_copies, "WORTH_THREADS_S", 0.0)
    copies = make_copies(EnvironmentSpec(id="Hopper-v5"), 2, 2)
    seen = begin(copies, 1)
    assert isinstance(copies, NativeCopies)
    played(copies, random_actions(copies, 20, 1), seen)
    copies._copies[1]._frames = "four"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="mj_step"):
        copies.step(np.zeros((2, 3), np.float32), seen)


def test_short_steps_are_not_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_copies, "WORTH_THREADS_S", 60.0)
    copies = make_copies(EnvironmentSpec(id="InvertedPendulum-v5"), 2, 2)
    assert isinstance(copies, NativeCopies)
    played(copies, random_actions(copies, 20, 1), begin(copies, 1))
    assert copies._threads == 1


def test_every_family_and_all_of_the_catalogue_is_compared() -> None:
    compared = {type(gymnasium.make(task).unwrapped) for task in TASKS}
    named = {f"{one.__module__}:{one.__qualname__}" for one in compared}
    assert named == {f"gymnasium.envs.{name}" for family in FAMILIES for name in family.classes}
    assert {entry.id for entry in ENTRIES.values() if entry.family != "Atari"} <= set(TASKS)


@pytest.mark.parametrize(
    "environment", ["CartPole-v1", "Hopper-v5", pytest.param("Ant-v5", marks=pytest.mark.slow)]
)
def test_a_synchronous_run_learns_the_same_weights(
    environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny(environment, rollout={"steps_per_call": 70, "environments_per_actor": 2})
    ours = final_learner(spec, InlinePlatform(), tmp_path / "ours")
    monkeypatch.setattr(gymnasium, "__version__", "1.4.1")
    assert ours == final_learner(spec, InlinePlatform(), tmp_path / "theirs")


class Rewarded(CartPoleEnv):  # type: ignore[misc]
    """Of another module, hence perhaps of another reward."""


def test_arguments_come_with_a_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another id for a known class, with arguments, is stepped natively with those; a registered wrapper is not."""
    hopper = gymnasium.spec("Hopper-v5")
    gymnasium.register("Heavy/Hopper-v0", entry_point=hopper.entry_point, kwargs={"ctrl_cost_weight": 2.0})
    try:
        copies = make_copies(EnvironmentSpec(id="Heavy/Hopper-v0"), 1)
        assert type(copies).__name__ == "NativeCopies"
        theirs = gymnasiums("Hopper-v5", 1, ctrl_cost_weight=2.0)
        seen, expected = begin(copies, 1), begin(theirs, 1)
        actions = random_actions(theirs, 40, 1)
        assert played(copies, actions, seen) == played(theirs, actions, expected)
    finally:
        del gymnasium.registry["Heavy/Hopper-v0"]


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 8, 9, 17, 23, 84, 120, 129, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_many_steps_are_those_of_one(count: int, dtype: Any) -> None:
    """Rewards of many steps are summed together: each sum must be rounded as Gymnasium's of one step is."""
    rng = np.random.default_rng(count)
    for shape in ((1, 1), (64, 1), (64, 4), (1, 4), (3, 1), (64, 33)):
        rows = rng.standard_normal((*shape, count)).astype(dtype)
        alone = [[np.sum(np.square(row)) for row in step] for step in rows]
        np.testing.assert_array_equal(np.sum(np.square(rows), axis=-1), np.array(alone, dtype=dtype))
