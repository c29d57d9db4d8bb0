"""Forks of a run: the same prefix, the same chance, and what their gains say of curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from research.branching import Branching, base_of, base_run, branch, branch_of, forks
from research.reports.fork_prediction import correlation, forks_of, judge_forks
from tests.training.inline_platform import InlinePlatform
from training.spec import TrainingSpec

BRANCHING = Branching(actors=2, boost=5, replicates=2, episodes=2)
TRAINING = TrainingSpec.model_validate(
    {
        "algorithm": {"kind": "ppo", "epochs": 2, "minibatch_size": 64, "learning_rate_decay": False},
        "network": {"kind": "mlp", "hidden": [8, 8]},
        "rollout": {"steps_per_call": 16},
        "stop": {"rounds": 3, "env_steps": None},
        "seed": 3,
    }
)


def test_a_branch_like_the_base_run_is_the_base_run() -> None:
    """The same seed, actors and policy after the checkpoint of round 1: round 2 bit for bit."""
    reports, checkpoints = base_run(TRAINING, BRANCHING, InlinePlatform())
    assert sorted(checkpoints) == [1, 2, 3]
    assert all(one.curvature is not None and one.actors == 2 for one in reports)
    like_it = base_of(TRAINING, BRANCHING).model_copy(
        update={"stop": TRAINING.stop.model_copy(update={"rounds": 2})}
    )
    _, again = branch(like_it, checkpoints[1], InlinePlatform(), "again-")
    from training.checkpoints import Progress

    ours, theirs = (Progress.decode(one, TRAINING) for one in (again[2], checkpoints[2]))
    assert ours.learner == theirs.learner
    assert ours.env_states == theirs.env_states


def test_both_branches_of_a_replicate_share_prefix_and_chance() -> None:
    _, checkpoints = base_run(TRAINING, BRANCHING, InlinePlatform())
    asked: dict[int, list[Any]] = {}
    for actors in (2, 5):
        platform = InlinePlatform()
        spec = branch_of(TRAINING, BRANCHING, round_no=2, replicate=0, actors=actors)
        score, _ = branch(spec, checkpoints[2], platform, "b-")
        assert score is not None
        asked[actors] = platform.submitted
    few, many = ([call for call in asked[actors] if call.kind == "rollout"] for actors in (2, 5))
    assert (len(few), len(many)) == (2, 5)
    for one, other in zip(few, many, strict=False):
        assert (one.seed, one.weights, one.env_state) == (other.seed, other.weights, other.env_state)
    judge = [[call.request for call in asked[actors] if call.kind == "evaluate"] for actors in (2, 5)]
    episodes = [[seed for one in some for seed in one.episode_seeds] for some in judge]
    assert episodes[0] == episodes[1]
    # Another replicate is another chance.
    other = branch_of(TRAINING, BRANCHING, round_no=2, replicate=1, actors=2)
    assert other.seed != branch_of(TRAINING, BRANCHING, round_no=2, replicate=0, actors=2).seed


def test_every_round_forks_and_what_is_done_is_left_out() -> None:
    short = TRAINING.model_copy(update={"stop": TRAINING.stop.model_copy(update={"rounds": 2})})
    rows = list(forks(short, BRANCHING, InlinePlatform(), {(1, 0), (2, 1)}))
    assert [(row["round"], row["replicate"]) for row in rows] == [(1, 1), (2, 0)]
    assert all(np.isfinite([row["boosted"], row["plain"]]).all() for row in rows)


def _rows(gain: Any, seed: int, rounds: int = 12) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    ratios = rng.lognormal(size=rounds)
    return [
        {"kind": "fork", "round": k + 1, "ratio": ratio, "plain": 10.0, "boosted": 10.0 + gain(ratio, rng)}
        for k, ratio in enumerate(ratios)
        for _ in range(5)
    ]


@pytest.mark.parametrize(
    ("gain", "seeds", "word"),
    [
        (lambda ratio, rng: -ratio + 0.05 * rng.normal(), 6, "holds"),
        (lambda ratio, rng: ratio + 0.05 * rng.normal(), 6, "does not hold"),
        (lambda ratio, rng: rng.normal(), 6, "not decided by 6 seeds"),
        (lambda ratio, rng: -ratio, 3, "not decided by 3 seeds"),
    ],
)
def test_what_gains_say_of_curvature(gain: Any, seeds: int, word: str) -> None:
    found = judge_forks([forks_of(_rows(gain, seed)) for seed in range(seeds)], repetitions=200)
    assert found.word == word
    assert found.interval is not None
    assert found.interval.low <= found.interval.value <= found.interval.high


def test_forks_without_a_ratio_say_nothing() -> None:
    row = {"kind": "fork", "round": 1, "ratio": None, "plain": 1.0, "boosted": 2.0}
    assert forks_of([row, {"kind": "end"}]) == {}
    assert judge_forks([{}]).word == "open"
    assert correlation({1: (1.0, [3.0]), 2: (2.0, [2.0]), 3: (0.5, [4.0]), 4: (4.0, [1.0])}) == pytest.approx(
        -1
    )
