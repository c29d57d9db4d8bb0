"""Stellaris' experiments: arms of equal work, clocks compared where they ran, and what rows tell of gradients."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloud.money.billing.retiming import retime
from cloud.timing.numbers import stack as stacks
from research.claims import HigherInTime, Sooner
from research.experiment import Arm, Cell, find_experiment, merged
from research.pricing_targets import place_of
from research.reports.break_even import price_sentence, time_sentence
from research.reports.clock_comparison import judge_seconds, virtual_seconds
from research.reports.outcomes import RunOutcome, Summary
from research.reports.return_comparison import judge_returns_in_time, return_within
from research.reports.run_cost import PricedRun
from research.runs.run_file import RunFile, run_file
from research.runs.seed_run import SeedRun
from research.scheduler_training import RehearsedTraining
from research.stellaris import LEARNERS, ROUND, SEEDS
from tests.research.tiny_experiment import CART, TINY
from training.loops.staleness_aware import StalenessAware

NAMES = (
    "stellaris_82k",
    "stellaris_82k_fast",
    "stellaris_1m",
    "stellaris_ablations",
    "stellaris_walker",
    "stellaris_humanoid",
    "stellaris_lambda",
    "stellaris_testbeds",
    "stellaris_truncation",
    "stellaris_options",
    "stellaris_ends",
)
# What an arm of the loop may do otherwise than the paper's defaults.
CHANGES: dict[str, set[str]] = {
    "stellaris": set(),
    "stellaris_again": set(),
    "stellaris_gpu": set(),
    "stellaris_hpc": {"learners", "trajectories_per_gradient"},
    "stellaris_ours": set(),
    "stellaris_sequential": {"aggregation"},
    "stellaris_flowing": {"actors_wait", "learners_wait"},
    "learners_go_on": {"learners_wait"},
    "stellaris_impact": set(),
    "stellaris_impala": set(),
    "purely_asynchronous": {"hold", "weighting", "truncation"},
    "decoupled": {"hold", "weighting", "truncation"},
    "fixed_bound": {"largest_staleness", "staleness_decay", "weighting", "truncation"},
    "without_truncation": {"truncation"},
    "without_weights": {"weighting"},
    "without_holding": {"hold"},
    "mean_ratio": {"truncation"},
    "waiting_quick": set(),
    "waiting_slow": set(),
    "flowing_quick": {"actors_wait", "learners_wait"},
    "flowing_slow": {"actors_wait", "learners_wait"},
    "weigh_gradients": {"aggregation"},
    "inverse": {"weighting"},
    "threshold": {"weighting", "staleness_threshold"},
    "by_kl": {"distance"},
    "truncation_released": {"truncation"},
    "truncation_differentiated": {"truncation"},
    "released": {"calibration", "weighting", "aggregation", "truncation"},
    "untruncated": {"learners", "trajectories_per_gradient", "order", "truncation"},
    "truncated": {"learners", "trajectories_per_gradient", "order"},
}

GRADIENTS = {
    "synchronous_10": 10,
    "untruncated": 10,
    "truncated": 10,
    "synchronous_160": 160,
    "stellaris_hpc": 160,
}
"""A round's, of the arms that do not make 40."""


@pytest.mark.parametrize("name", NAMES)
def test_arms_do_equal_work_and_differ_in_what_they_say(name: str) -> None:
    """Each sample is passed over ten times in 40 gradients a round, but for the paper's baseline, which has 10, as
    one learner of whole rounds has, and for as many learners as actors, which have 160.
    """
    experiment = find_experiment(name)
    for cell in experiment.cells():
        training = experiment.spec(cell).training
        loop, algorithm = training.loop, training.algorithm
        assert training.stop.rounds == (244 if name == "stellaris_1m" else 20)
        assert training.scaling.largest * training.progress_a_call == ROUND
        assert algorithm.passes == 10
        if isinstance(loop, StalenessAware):
            plain = StalenessAware(learners=LEARNERS, trajectories_per_gradient=4, where="learner")
            changed = {
                field
                for field in StalenessAware.model_fields
                if getattr(loop, field) != getattr(plain, field)
            }
            on_functions = {"where"} if name == "stellaris_lambda" else set()
            assert changed == CHANGES[cell.arm] | on_functions
            slices = training.scaling.largest // loop.trajectories_per_gradient
        else:
            slices = ROUND // algorithm.minibatch_size
        assert slices * algorithm.passes == GRADIENTS.get(cell.arm, 40)


def test_from_pictures_each_sample_is_passed_over_four_times_in_sixteen_gradients_a_round() -> None:
    experiment = find_experiment("stellaris_gravitar")
    for cell in experiment.cells():
        training = experiment.spec(cell).training
        loop, round_samples = training.loop, training.scaling.largest * training.progress_a_call
        assert (round_samples, training.algorithm.passes, training.stop.rounds) == (256, 4, 100)
        if isinstance(loop, StalenessAware):
            slices = training.scaling.largest // loop.trajectories_per_gradient
        else:
            slices = round_samples // training.algorithm.minibatch_size
        assert slices * training.algorithm.passes == (4 if cell.arm == "synchronous_4" else 16)


def test_minionsrl_has_the_same_recipe_and_samples_and_decides_how_many_actors_sample() -> None:
    experiment = find_experiment("stellaris_minionsrl")
    ours, minions, all_at_once = (
        experiment.spec(Cell(arm, "Hopper-v5", SEEDS[0])).training
        for arm in ("synchronous_40", "minionsrl", "fixed_16")
    )
    assert all_at_once == ours.model_copy(update={"stop": all_at_once.stop})
    assert minions == ours.model_copy(update={"stop": minions.stop, "evaluation": minions.evaluation})
    assert minions.stop.env_steps == 20 * ROUND
    assert minions.stop.rounds == minions.stop.env_steps // minions.progress_a_call
    training = next(arm.study for arm in experiment.arms if arm.name == "scheduler")
    assert isinstance(training, RehearsedTraining)
    assert training.actors_max == ours.scaling.largest


def test_the_primary_claims_opponent_takes_as_many_gradients() -> None:
    primary = find_experiment("stellaris_82k").primary
    assert primary is not None
    assert primary.arm == "stellaris"
    assert primary.against == ("synchronous_40",)  # type: ignore[union-attr]


def outcome(arm: str, seed: int, rounds: list[float], resumed_after: int = 0) -> RunOutcome:
    rows: list[dict[str, Any]] = [{"kind": "begin", "made_with": {}}]
    for place, total_s in enumerate(rounds, start=1):
        rows.append({"kind": "round", "round": place, "total_s": total_s})
        rows.append({"kind": "evaluation", "round": place, "at_s": 1e6})
        if place == resumed_after:
            rows.append({"kind": "resumed", "round": place})
    return RunOutcome(Cell(arm, "Hopper-v5", seed), [*rows, {"kind": "end"}])


def test_seconds_are_of_rounds_with_one_start_of_machines_or_none() -> None:
    unbroken = outcome("stellaris", 0, [60.0, 2.0, 2.0, 2.0])
    assert virtual_seconds(unbroken, startup=True) == 66.0
    assert virtual_seconds(unbroken, startup=False) == 8.0
    gone_on_with = outcome("stellaris", 0, [60.0, 2.0, 62.0, 2.0], resumed_after=2)
    assert virtual_seconds(gone_on_with, startup=True) == 66.0
    assert virtual_seconds(gone_on_with, startup=False) == 8.0


def test_rounds_of_data_that_was_sampled_during_the_start_are_no_usual_ones() -> None:
    """An asynchronous learner whose machine started late learns at once from the data that waits by then."""
    quick_at_first = outcome("asynchronous", 0, [60.0, *[0.5] * 11, *[2.0] * 3])
    assert virtual_seconds(quick_at_first, startup=True) == 71.5
    assert virtual_seconds(quick_at_first, startup=False) == 30.0


@pytest.mark.parametrize(
    ("ours", "changes", "word"),
    [
        (1.0, {"startup": False}, "holds"),
        (4.0, {"startup": False}, "does not hold"),
        (2.1, {"alike": True}, "holds"),
        (4.0, {"startup": False, "alike": True}, "does not hold"),
    ],
)
def test_an_arm_is_done_sooner_or_not(ours: float, changes: dict[str, Any], word: str) -> None:
    summaries = [
        Summary(
            arm,
            "Hopper-v5",
            5,
            tuple(outcome(arm, seed, [60.0, round_s + seed / 1000, round_s]) for seed in SEEDS),
        )
        for arm, round_s in (("stellaris", ours), ("synchronous_40", 2.0))
    ]
    shared = {"arm": "stellaris", "against": ("synchronous_40",), "environments": ("Hopper-v5",)}
    claim = Sooner.model_validate({**shared, **changes})
    assert judge_seconds(claim, summaries).word == word
    assert judge_seconds(claim, summaries[:1]).word == "open"


def test_returns_are_compared_in_the_time_that_both_had() -> None:
    """Rounds of 2 s against 1 s: when the quicker side has done its four, the other has done two of them."""

    def run(arm: str, seed: int, round_s: float, gain: float) -> RunOutcome:
        rows = [
            {"kind": "round", "round": place, "total_s": round_s + 60 * (place == 1)} for place in range(1, 5)
        ]
        evaluations = [
            {"kind": "evaluation", "round": place, "return_mean": (gain + seed) * place}
            for place in (1, 3, 4)
        ]
        return RunOutcome(Cell(arm, "Hopper-v5", seed), [*rows, *evaluations, {"kind": "end"}])

    assert return_within(run("stellaris", 0, 2.0, 100.0), 4.0) == 200.0
    assert return_within(run("synchronous_40", 0, 1.0, 100.0), 4.0) == 400.0
    summaries = [
        Summary(arm, "Hopper-v5", 5, tuple(run(arm, seed, round_s, gain) for seed in SEEDS))
        for arm, round_s, gain in (("stellaris", 2.0, 110.0), ("synchronous_40", 1.0, 100.0))
    ]
    claim = HigherInTime(arm="stellaris", against=("synchronous_40",), environments=("Hopper-v5",))
    found = judge_returns_in_time(claim, summaries)
    assert found.interval is not None
    # The middle three seeds of 400 to 404: two rounds of 512 on average against four of 502.
    assert found.interval.value == pytest.approx(2 * 512 / (4 * 502))
    assert found.word == "does not hold"
    assert judge_returns_in_time(claim, summaries[:1]).word == "open"


def test_rows_hold_what_became_of_gradients_and_the_rent_of_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = {"kind": "staleness_aware", "learners": 2, "trajectories_per_gradient": 1, "where": "learner"}
    experiment = TINY.model_copy(
        update={
            "base": merged(TINY.base, {"platform": {"profile": "stellaris-cluster", "learner_lanes": 2}}),
            "arms": (
                Arm(
                    name="few",
                    title="F",
                    changes={"training": {"loop": loop, "scaling": {"kind": "fixed", "actors": 2}}},
                ),
            ),
            "pricing_targets": (),
        }
    )
    cell = Cell("few", CART, 0)
    file = RunFile(tmp_path / "tiny", cell)
    assert SeedRun(experiment, cell, file, root=tmp_path, folder=tmp_path / "tiny").run()
    rows = file.rows()
    rounds = [row for row in rows if row["kind"] == "round"]
    assert [row["gradients"]["gradients"] for row in rounds] == [2] * 5
    # Two machines at $3.06 and $2.04 an hour.
    seconds = rounds[-1]["at_s"]
    assert rows[-1]["cost_usd"] > (3.06 + 2.04) * seconds / 3600 * 0.9


def test_a_verdict_says_how_slow_samples_and_how_cheap_functions_would_turn_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says is put into the place, and the runs are timed and priced there again."""
    ours, theirs = (_cluster_run(tmp_path, name, loop) for name, loop in _LOOPS.items())
    found = time_sentence(ours, theirs, _PLACE, [1.0, 1e-3])
    said = re.search(
        r"would make it ([\d.]+)\. It turns where samples take the learners longer, on both sides: 1 at (\d+) µs,"
        r" 0\.001 not even at 160 µs a sample\. Here it is 0\.0 on the GPU; a core takes 3\.$",
        found,
    )
    assert said is not None, found
    place = place_of(_PLACE, "no_startup")
    update = place.stack.update

    def ratio(**changes: Any) -> float:
        changed = replace(
            place,
            stack=place.stack.model_copy(update={"update": update.model_copy(update=changes)}),
        )
        seconds = [
            sum(one.total_s for one in retime(run.schedules(run.rounds)[0], changed, seed=0).rounds)
            for run in (ours, theirs)
        ]
        return seconds[0] / seconds[1]

    assert update.gradient_ms is not None
    at_no_time = update.gradient_ms.model_copy(update={"value": 0.0, "low": 0.0})
    assert ratio(gradient_ms=at_no_time) == pytest.approx(float(said[1]), rel=0.01)
    slow = update.gpu_mlp.per_sample_us.model_copy(update={"value": float(said[2]), "high": 200.0})
    assert ratio(gpu_mlp=update.gpu_mlp.model_copy(update={"per_sample_us": slow})) == (
        pytest.approx(1.0, rel=0.05)
    )

    words = price_sentence(theirs, ours, _PLACE)
    assert words == "", "a synchronous learner computes no gradients apart"
    words = price_sentence(ours, theirs, _PLACE)
    price = re.search(r"would be cheaper below \$([\d.]+) an hour", words)
    mine, other = (run.cost(_PLACE, run.rounds, "no_startup") for run in (ours, theirs))
    assert (price is None) == (mine.usd * mine.rollouts_share > other.usd), words


_PLACE = "stellaris_cluster_paper"
_LOOPS: dict[str, dict[str, Any]] = {
    "few": {"kind": "staleness_aware", "learners": 2, "trajectories_per_gradient": 1, "where": "learner"},
    "like": {"kind": "synchronous"},
}


def _cluster_run(folder: Path, name: str, loop: dict[str, Any]) -> PricedRun:
    training = {
        "loop": loop,
        "scaling": {"kind": "fixed", "actors": 2},
        "rollout": {"steps_per_call": 512},
        "algorithm": {"kind": "ppo", "epochs": 10, "minibatch_size": 512},
        "stop": {"rounds": 3},
    }
    experiment = TINY.model_copy(
        update={
            "base": merged(TINY.base, {"platform": {"profile": "stellaris-cluster", "learner_lanes": 4}}),
            "arms": (Arm(name=name, title=name, changes={"training": training}),),
            "pricing_targets": (_PLACE,),
        }
    )
    cell = Cell(name, CART, 0)
    file = RunFile(folder / name, cell)
    assert SeedRun(experiment, cell, file, root=folder, folder=folder / name).run()
    return PricedRun(RunOutcome(cell, file.rows()), file.segments)


@pytest.mark.parametrize("end", ["quick", "slow"])
def test_the_stacks_of_stellaris_ends_are_the_papers_but_for_learners_calls(end: str) -> None:
    """No form or list offers them; a job that names one has it."""
    assert find_experiment("stellaris_ends")
    usual, there = stacks.load("paper-stack"), stacks.load(f"paper-stack-{end}-learners")
    assert f"paper-stack-{end}-learners" not in stacks.names()
    moved = {}
    for name in ("gradient_ms", "apply_ms"):
        quantity = getattr(usual.update, name)
        value = quantity.low if end == "quick" else quantity.high
        assert value != quantity.value
        moved[name] = quantity.model_copy(update={"value": value})
    update = usual.update.model_copy(update=moved)
    assert there == usual.model_copy(update={"update": update, "title": there.title})


def test_whichever_half_of_the_seeds_chooses_the_cheapest_machine_that_learns_it_is_the_small_one() -> None:
    """`stellaris_lambda` compares with each machine by all seeds. Chosen on one half of them and judged on the other,
    the cheapest would be the same: it is so on every seed.
    """
    experiment = find_experiment("stellaris_lambda")
    machines = [name for name in experiment.pricing_targets if name.startswith("machine")]
    assert len(machines) == 3
    for seed in SEEDS:
        file = run_file(
            experiment, Path("nowhere/stellaris_lambda"), Cell("synchronous_40", "Hopper-v5", seed)
        )
        run = PricedRun(RunOutcome(file.cell, file.rows()), file.segments)
        usd = {name: run.cost(name, run.rounds).usd for name in machines}
        assert min(usd, key=lambda name: usd[name]) == "machine_small"
