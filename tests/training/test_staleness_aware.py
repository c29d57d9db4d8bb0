"""The staleness-aware loop: equal to the synchronous one where it must be, and repeatable where it says so."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of, final_learner
from tests.training.specs import tiny
from tests.training.stellaris_runs import QUICK, at_random, loop, reports
from training.engine.checkpoints import FileCheckpointStore, Progress
from training.rl.learner import LearnerState

ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo, one pass": {"kind": "ppo", "epochs": 1, "normalise_observations": True, "normalise_rewards": True},
    "ppo, ten passes": {
        "kind": "ppo",
        "epochs": 10,
        "normalise_observations": True,
        "normalise_rewards": True,
        "value_clip": 0.2,
    },
    "ppo with a KL penalty": {"kind": "ppo", "epochs": 3, "kl_coefficient": 0.2},
    "a2c": {"kind": "a2c", "normalise_observations": True},
    "impala": {"kind": "impala", "normalise_observations": True},
    "impact": {"kind": "impact", "target_every_updates": 2},
}


@pytest.mark.parametrize("order", ["arrival", pytest.param("launch", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_one_learner_with_whole_rounds_learns_what_the_synchronous_loop_learns(
    tmp_path: Path, name: str, order: str
) -> None:
    """To the last bit, whatever is left off but the count of versions: a pass is a version here."""
    minibatch = {} if name == "a2c" else {"minibatch_size": 48}
    changes: dict[str, Any] = {"algorithm": ALGORITHMS[name] | minibatch, "stop": {"rounds": 5}}
    one = loop(learners=1, trajectories_per_gradient=3, truncation="off", order=order)
    synchronous, stellaris = (
        LearnerState.decode(final_learner(tiny(**changes, **more), InlinePlatform(), tmp_path / str(i)))
        for i, more in enumerate([{}, {"loop": one}])
    )
    assert stellaris.version >= synchronous.version == 5
    for group in ("parameters", "first_moments", "second_moments", "target_parameters"):
        before, after = getattr(synchronous, group), getattr(stellaris, group)
        assert list(before) == list(after)
        assert all(np.array_equal(before[key], after[key]) for key in before)
    for moments in ("observation_moments", "return_moments"):
        one_side, other = getattr(synchronous, moments), getattr(stellaris, moments)
        assert (one_side is None) == (other is None)
        if one_side is not None:
            assert one_side.count == other.count
            assert np.array_equal(one_side.mean, other.mean)
            assert np.array_equal(one_side.variance, other.variance)
    assert stellaris.kl_coefficient == synchronous.kl_coefficient
    assert stellaris.optimiser_steps == synchronous.optimiser_steps


LAUNCH = {"algorithm": QUICK, "loop": loop(order="launch"), "scaling": {"actors": 5}, "stop": {"rounds": 4}}


def test_in_the_order_of_launch_it_repeats_whichever_answers_first(tmp_path: Path) -> None:
    learners = {
        final_learner(tiny(**LAUNCH), InlinePlatform(order=order, warmths=2), tmp_path / str(i))
        for i, order in enumerate([lambda n: 0, lambda n: n - 1, at_random(1), at_random(2)])
    }
    assert len(learners) == 1


def test_learners_that_do_not_wait_go_on_with_the_version_there_is_and_still_repeat(tmp_path: Path) -> None:
    """While a version is made of a gradient, its learner's next one is computed with the version before."""
    spec = tiny(**LAUNCH | {"loop": loop(order="launch", learners_wait=False)})
    learners = {
        final_learner(spec, InlinePlatform(order=order, warmths=2), tmp_path / str(i))
        for i, order in enumerate([lambda n: 0, at_random(1)])
    }
    assert len(learners) == 1
    assert learners != {final_learner(tiny(**LAUNCH), InlinePlatform(), tmp_path / "waits")}
    for waits, behind in ((True, 0), (False, 1)):
        alone = loop(learners=1, trajectories_per_gradient=5, learners_wait=waits)
        found = reports(events_of(tiny(**LAUNCH | {"loop": alone}), InlinePlatform()))
        assert max(report.gradients.staleness_most for report in found) == behind


def test_in_the_order_of_launch_failures_change_nothing(tmp_path: Path) -> None:
    """A failed gradient is computed again with the same parameters, as all others wait for it."""
    rng = random.Random(5)
    fault = lambda call: "made to fail" if call.attempt == 1 and rng.random() < 0.2 else None  # noqa: E731
    learners = {
        final_learner(tiny(**LAUNCH), platform, tmp_path / str(i))
        for i, platform in enumerate([InlinePlatform(), InlinePlatform(order=at_random(3), fault=fault)])
    }
    assert len(learners) == 1


@pytest.mark.parametrize("rounds", [2, *(pytest.param(rounds, marks=pytest.mark.slow) for rounds in (1, 3))])
def test_in_the_order_of_launch_a_resumed_run_is_the_same_run(tmp_path: Path, rounds: int) -> None:
    spec = tiny(**LAUNCH, checkpoints={"every_rounds": 1})
    whole = final_learner(spec, InlinePlatform(), tmp_path / "whole")
    store = FileCheckpointStore(tmp_path / "split")
    short = spec.model_copy(update={"stop": spec.stop.model_copy(update={"rounds": rounds})})
    events_of(short, InlinePlatform(order=at_random(1)), checkpoints=store)
    events_of(spec, InlinePlatform(), checkpoints=store, resume=store.load(store.names()[-1]))
    assert Progress.decode(store.load(store.names()[-1]), spec).learner == whole
