"""Environments stepped natively against Gymnasium's, over up to a hundred thousand steps of each task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.native_tasks import TASKS, begin, gymnasiums, native
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny
from tests.work import repeated
from training.engine.checkpoints import Progress
from training.rl.networks.inference import NumpyPolicy

_COPIES = 4
_BETWEEN_SNAPSHOTS = 2_500


@repeated(2_500, endurance=25_000)
@pytest.mark.parametrize("task", TASKS)
def test_thousands_of_steps_of_four_copies_are_gymnasiums(task: str, times: int) -> None:
    """Half of the copies act at random, half by a policy of our engine; what one way saved the other opens."""
    policy, rng = _trained(task), np.random.default_rng(1)
    ours, theirs = native(task, _COPIES), gymnasiums(task, _COPIES)
    seen, expected = begin(ours, 1), begin(theirs, 1)
    ended = 0
    for t in range(times):
        actions = _actions(policy, seen, rng, ours.action_space)
        ends = ours.step(actions, seen)
        assert list(ends) == list(theirs.step(actions, expected))
        assert seen.tobytes() == expected.tobytes()
        for end in ends:
            ended += 1
            ours.restart(end.n, seen[end.n])
            theirs.restart(end.n, expected[end.n])
        if t % _BETWEEN_SNAPSHOTS == _BETWEEN_SNAPSHOTS - 1:
            assert seen.tobytes() == expected.tobytes()
            assert ours.rewards().tobytes() == theirs.rewards().tobytes()
            here, there = ours.save(), theirs.save()
            assert here == there
            ours.restore([state for state in there if state is not None])
            theirs.restore([state for state in here if state is not None])
    assert ended >= _COPIES


def _actions(policy: NumpyPolicy, seen: np.ndarray, rng: np.random.Generator, space: Any) -> Any:
    """Each second copy acts by the policy, the others at random."""
    trained, _ = policy.sample(seen, policy.draw_noise(rng, 1, len(seen))[0])
    if policy.discrete:
        return [int(one) if n % 2 else int(rng.integers(space.n)) for n, one in enumerate(trained)]
    actions = np.clip(trained, space.low, space.high)
    actions[::2] = rng.uniform(space.low, space.high, actions[::2].shape)
    return actions


def _trained(task: str) -> NumpyPolicy:
    store = Forgetful()
    spec = tiny(
        task,
        rollout={"steps_per_call": 256, "environments_per_actor": 4},
        scaling={"kind": "fixed", "actors": 2},
        algorithm={"epochs": 6, "minibatch_size": 256, "learning_rate": 1e-3},
        stop={"rounds": 12},
        evaluation={"every_rounds": 100, "episodes": 1},
        checkpoints={"every_rounds": 12},
    )
    events = events_of(spec, InlinePlatform(), checkpoints=store)
    assert events[-1].reason_code == "rounds", events[-1].reason
    return NumpyPolicy(Progress.decode(store.saved[12], spec).weights)
