"""What is said of costs, of what repeats, and of runs that cannot begin, word by word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from research.claims import Cheaper, NotWorse
from research.experiment import (
    Arm,
    Cell,
    Experiment,
    find_experiment,
    merged,
)
from research.reports.cost_comparison import CostComparisons
from research.reports.fork_prediction import forks_of, judge_forks
from research.reports.return_comparison import judge_not_worse
from research.reports.run_cost import PricedRun
from research.reports.scheduler_cost import scheduler_cost_sentences
from research.runs.dependencies import DependencyMissing, dependency_files
from research.runs.run_file import RunFile
from research.runs.runner import ExperimentRunner, RunChoice
from research.runs.seed_run import RunFailed, SeedRun
from research.scheduler_training import RehearsedTraining
from research.skill import why_not_skilled
from tests.research.test_decline import trained
from tests.research.test_forks import rows_of_forks
from tests.research.test_reliability import judged, made_up
from tests.research.test_skill import write_pilots
from tests.research.tiny_experiment import CART, CLAIM, TINY
from tests.research.tiny_runs import run_of


def test_a_run_whose_versions_depend_on_times_is_priced_where_it_was_trained() -> None:
    experiment = find_experiment("stellaris_lambda")
    assert experiment.priced_at("stellaris", "Hopper-v5") == ("lambda_learners_starling",)
    assert experiment.priced_at("synchronous_40", "Hopper-v5") == experiment.pricing_targets
    elsewhere = experiment.claims[0].model_copy(update={"at": "machine"})
    with pytest.raises(ValueError, match="stellaris cannot be timed at machine"):
        Experiment.model_validate({**dict(experiment), "claims": (elsewhere,)})


def test_what_cannot_be_said_of_costs_is_explained(folder: Path) -> None:
    never, late = run_of(folder, "few", [1.0] * 5), run_of(folder, "few", [1.0, 1.0, 60.0, 60.0, 60.0])
    soon, boosted = run_of(folder, "few", [60.0] * 5), run_of(folder, "boosted", [1.0, 1.0, 60.0, 60.0, 60.0])

    def reason(few: list[PricedRun], other: PricedRun, like: PricedRun = late, **fields: Any) -> str:
        runs = {
            ("few", CART): dict(enumerate(few)),
            ("boosted", CART): dict.fromkeys(range(len(few)), other),
            ("like", CART): dict.fromkeys(range(len(few)), like),
        }
        return CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**{**CLAIM, **fields})).reason

    seldom = [never] * 4 + [late] * 2
    ours = reason(seldom, boosted, arm="few", at="machine", against=("boosted",))
    theirs = reason(seldom, boosted, against_at="machine")
    twice = reason(seldom * 2, boosted)
    assert f"On {CART} neither side reached the target in half of its runs." in reason([never] * 2, never)
    for words, side in ((ours, "ours"), (theirs, "theirs")):
        assert (
            f"On {CART} {side} reached the target in fewer than half of its runs:"
            " what that would have cost is not known." in words
        )
    assert (
        f"On {CART} theirs reached the target in fewer than half of its runs; counted as what was spent in vain, and"
        " not as twice that, it decides nothing." in twice
    )
    edge = reason([soon] * 5, boosted, boosted, at="machine", against=("few", "like", "boosted"))
    assert "The best is at the edge of those tried: a better one may lie beyond." in edge
    assert "To find the best of 3 cost another $" in edge


def test_what_differs_in_other_accounts_of_a_claim(folder: Path) -> None:
    run = run_of(folder, "few", [60.0] * 5)
    runs = {(arm, CART): dict.fromkeys(range(6), run) for arm in ("few", "boosted")}
    judgement = CostComparisons(runs, {CART: 50.0}).cheaper(Cheaper(**CLAIM))
    assert [variant["words"] for variant in judgement.more["variants"]] == [
        "without the start of machines and functions on both sides",
        "if no call rebuilt its workers",
        "if the first of three readings at the target ended it",
    ]


def test_what_no_return_decides_is_explained() -> None:
    claim = NotWorse(arm="ours", against="theirs", environment=CART, margin=0.8)
    sides = [trained(arm, [(80.0, 1.0)] * 5) for arm in ("ours", "theirs")]
    waits = judge_not_worse(claim, [sides[0], replace(sides[1], outcomes=sides[1].outcomes[:4])])
    assert waits.reason == "It is judged once all are."


def test_what_repeats_and_what_it_takes() -> None:
    dear = judged([made_up(1.0, 0.2, share=0.2, seed=seed) for seed in range(5)])
    assert "None takes as little as 5 % of a round; it is the best of all." in dear.reason
    most = judged([made_up(0.3, 1.0, seed=seed, sizes=(256, 4096)) for seed in range(5)])
    assert "From all 4,096 samples it is 0." in most.reason


def test_a_correlation_that_may_be_anything() -> None:
    chance = [forks_of(rows_of_forks(lambda ratio, rng: rng.normal(), seed)) for seed in range(6)]
    assert judge_forks(chance, repetitions=200, r_reliability=0.0001).reason.endswith(
        ": nothing can be said of the correlation without that noise."
    )


def test_what_schedulers_cost() -> None:
    school = {"recorded": ("few",), "actors_max": 4, "rounds": 3, "episodes": 1, "rehearsals": 2}
    arms = (
        *TINY.arms,
        Arm(name="scheduler", title="S", study=RehearsedTraining(**school)),
        Arm(name="on", title="S, on", study=RehearsedTraining(**school, begin_with="scheduler")),
    )
    costs = {"few": 3.0, "scheduler": 2.0, "on": 0.5}
    titles = {arm.name: arm.title for arm in arms}
    spent = [
        {"arm": name, "environment": CART, "title": titles[name], "cost_usd_by_seed": {"0": usd}}
        for name, usd in costs.items()
    ]
    besides = " Rehearsals cost nothing; the runs that they were put together from cost $3.00."
    assert scheduler_cost_sentences(TINY.model_copy(update={"arms": arms}), spent) == [
        f"{CART}, S: $2.00 for its 1 real episode.{besides}",
        f"{CART}, S, on: $0.50 for its 1 real episode, 25 % of those from scratch.{besides}",
    ]


def test_runs_that_cannot_begin(folder: Path, tmp_path: Path) -> None:
    cell = Cell("few", CART, 0)
    other = TINY.model_copy(
        update={"base": merged(TINY.base, {"training": {"rollout": {"steps_per_call": 32}}})}
    )
    (found,) = ExperimentRunner("tiny", other, RunChoice(arms=["few"]), folder=folder, root=tmp_path).run()
    path = RunFile(folder, cell).path
    assert found.reason == f"{path} is of another recipe: move it away to run it again"
    with pytest.raises(DependencyMissing, match=r"^like needs boosted on CartPole-v1, seed 0, first\.$"):
        dependency_files(TINY, tmp_path, Cell("like", CART, 0))
    unpriced = Cell("once", CART, 0)
    begun = RunFile(tmp_path, unpriced)
    begun.path.parent.mkdir(parents=True, exist_ok=True)
    begun.append({"kind": "begin", "recipe": "another"})
    with pytest.raises(
        RunFailed, match=r"was begun with another recipe; move it away before running the new one\.$"
    ):
        SeedRun(find_experiment("same_twice"), unpriced, begun, root=tmp_path, folder=tmp_path).run()


def test_a_target_that_asks_for_no_skill(data: Path) -> None:
    low = TINY.model_copy(update={"targets": {CART: 209.0}})
    write_pilots(data, untrained=10.0, first=20.0, last=410.0)
    assert why_not_skilled(low, data) == (
        "CartPole-v1's target of 209 asks for too little: the untrained policy scores 10.0 and the reference 410.0, so"
        " that a target must be 210.0 or more."
    )
