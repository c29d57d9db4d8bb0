"""Forks of a run: the same prefix, the same chance, and what their gains say of curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from research.branching import Branching, base_of, base_run, branch, branch_of, forks
from research.experiment import recipe_hash
from research.reports.fork_prediction import correlation, forks_of, gain_reliability, judge_forks
from research.reports.judging import undecided
from tests.training.inline_platform import InlinePlatform
from training.spec import TrainingSpec
from webapp.jobs.spec import JobSpec

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
    assert all(one.figures.curvature is not None and one.actors == 2 for one in reports)
    like_it = base_of(TRAINING, BRANCHING).model_copy(
        update={"stop": TRAINING.stop.model_copy(update={"rounds": 2})}
    )
    _, again = branch(like_it, checkpoints[1], InlinePlatform(), "again-")
    from training.engine.checkpoints import Progress

    ours, theirs = (Progress.decode(one, TRAINING) for one in (again[2], checkpoints[2]))
    assert ours.learner == theirs.learner
    assert ours.slot_states == theirs.slot_states


def test_both_branches_of_a_replicate_share_prefix_and_chance() -> None:
    _, checkpoints = base_run(TRAINING, BRANCHING, InlinePlatform())
    calls: dict[int, list[Any]] = {}
    for actors in (2, 5):
        platform = InlinePlatform()
        spec = branch_of(TRAINING, BRANCHING, round_no=2, replicate=0, actors=actors)
        score, _ = branch(spec, checkpoints[2], platform, "b-")
        assert score is not None
        calls[actors] = platform.submitted
    few, many = ([call for call in calls[actors] if call.kind == "rollout"] for actors in (2, 5))
    assert (len(few), len(many)) == (2, 5)
    for one, other in zip(few, many, strict=False):
        assert (one.seed, one.weights, one.slot_state) == (other.seed, other.weights, other.slot_state)
    judge = [[call.request for call in calls[actors] if call.kind == "evaluate"] for actors in (2, 5)]
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


def test_branches_go_on_with_the_actors_of_the_base_run_and_are_judged_again() -> None:
    """Two further rounds after a fork of round 2: the plain branch is the run that never branched, bit for bit."""
    short = TRAINING.model_copy(update={"stop": TRAINING.stop.model_copy(update={"rounds": 2})})
    longer = BRANCHING.model_copy(update={"further": 2})
    platform = InlinePlatform()
    (row,) = forks(short, longer, platform, {(1, 0), (1, 1), (2, 0)})
    (before,) = forks(short, BRANCHING, InlinePlatform(), {(1, 0), (1, 1), (2, 0)})
    assert {name: row[name] for name in before} == before
    sampled = [call for call in platform.submitted if call.kind == "rollout" and "later-" in call.name]
    assert sorted(call.round_no for call in sampled) == [4, 4, 4, 4, 5, 5, 5, 5]
    unbroken = branch_of(TRAINING, BRANCHING, round_no=2, replicate=1, actors=2, rounds=3)
    score, _ = branch(
        unbroken, base_run(short, BRANCHING, InlinePlatform())[1][2], InlinePlatform(), "whole-"
    )
    assert row["plain_later"] == score


def test_a_study_that_goes_on_is_another_recipe() -> None:
    spec = JobSpec(name="forks", training=TRAINING, platform={"kind": "local"}, budget_usd="1")
    longer = BRANCHING.model_copy(update={"further": 2})
    assert recipe_hash(spec, BRANCHING) == recipe_hash(spec) != recipe_hash(spec, longer)


def rows_of_forks(gain: Any, seed: int, rounds: int = 12) -> list[dict[str, Any]]:
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
        (lambda ratio, rng: rng.normal(), 6, undecided(6)),
        (lambda ratio, rng: -ratio, 3, undecided(3)),
    ],
)
def test_what_gains_say_of_curvature(gain: Any, seeds: int, word: str) -> None:
    found = judge_forks([forks_of(rows_of_forks(gain, seed)) for seed in range(seeds)], repetitions=200)
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


def test_the_reliability_of_gains_by_hand() -> None:
    """Means 1 and 3 with replicates 1 apart on either side: 4 between, 2 within, so that half of it is chance."""
    assert gain_reliability({1: (1.0, [0.0, 2.0]), 2: (1.0, [2.0, 4.0])}) == pytest.approx(0.5)
    assert gain_reliability({1: (1.0, [0.0, 2.0]), 2: (1.0, [0.0, 2.0])}) == 0.0
    assert gain_reliability({1: (1.0, [1.0, 1.0]), 2: (1.0, [3.0, 3.0])}) == 1.0
    assert gain_reliability({1: (1.0, [1.0])}) == 0.0


def test_noise_is_taken_out_of_a_correlation() -> None:
    """A correlation of −1 that noise in the gains hides: the interval without it reaches about as far as −1."""
    rng = np.random.default_rng(2)

    def seed_of() -> dict[int, Any]:
        ratios = {k: float(rng.standard_normal()) for k in range(1, 41)}
        return {
            k: (r, [float(-r + 2.0 * rng.standard_normal()) for _ in range(5)]) for k, r in ratios.items()
        }

    found = judge_forks([seed_of() for _ in range(6)], repetitions=200)
    assert found.interval is not None
    assert found.interval.value > -0.85
    freed = found.more["disattenuated"]
    assert freed["low"] < -0.95 < freed["value"] + 0.2
    exact = judge_forks([seed_of() for _ in range(6)], repetitions=200, r_reliability=0.25)
    assert "R one of 0.25" in exact.reason
    # No correlation is beyond 1, and one that may be anything is not given as a figure.
    nothing = judge_forks([seed_of() for _ in range(6)], repetitions=200, r_reliability=0.0001)
    assert nothing.more["disattenuated"]["low"] == -1.0
