"""What would turn Stellaris' times: other numbers change only what they name, and the first row is the report's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud.timing.numbers import stack as stacks
from research.calculations.stellaris_turns import (
    CHANGES,
    FROM_PICTURES,
    ON_HOPPER,
    Runs,
    ratios,
    stored_run,
)
from research.experiment import find_experiment
from research.pricing_targets import place_of
from research.reports.break_even import usual_round_s
from research.stellaris import PLACE, SEEDS
from tests.research.stored_rows import stored

EXPECTED: dict[str, tuple[set[str], set[str]]] = {
    "as assumed": (set(), set()),
    "a gradient takes nothing beside reading and samples": ({"gradient_ms"}, set()),
    "an aggregation reads a megabyte in 1 ms, not 5": ({"apply_us_per_megabyte"}, set()),
    "both": ({"gradient_ms", "apply_us_per_megabyte"}, set()),
    "each learner has a GPU of its own": (set(), {"learner_machines"}),
    "a sample takes learners 30 µs on both sides": ({"gpu_mlp"}, set()),
    "the same, with a GPU of its own each": ({"gpu_mlp"}, {"learner_machines"}),
    "all that learners read takes 1 ms a megabyte, on both sides": ({"us_per_megabyte"}, set()),
    "the same, with a GPU of its own each and nothing beside reading and samples": (
        {"us_per_megabyte", "gradient_ms"},
        {"learner_machines"},
    ),
}
"""What differs of the stack's updates, and of what is bought."""
_OUR_SOFTWARE = "our own software on the same machines"


def test_shorter_calls_make_no_run_longer() -> None:
    place = place_of(PLACE, "no_startup")
    usual, shorter_gradient, shorter_reading, both = (
        usual_round_s(stored_run(ON_HOPPER, "stellaris", SEEDS[0]), CHANGES[words](place))
        for words in list(CHANGES)[:4]
    )
    assert both < min(shorter_gradient, shorter_reading) < max(shorter_gradient, shorter_reading) < usual


_STEPS = {
    "stellaris_82k": ("40 steps of 1,024", "10 steps of 4,096"),
    "stellaris_ends": ("40 steps of 1,024", "10 steps of 4,096"),
    "stellaris_gravitar": ("16 steps of 64", "4 steps of 256"),
}


def reported(name: str, more: str = "") -> list[float]:
    """The ratios of an experiment's report, in the order of `ratios`. `more`: how its arms' titles go on."""
    found = {
        (one["asked"]["ours"], one["asked"]["theirs"]): one["figures"]["interval"]["value"]
        for one in stored(name)["verdicts"]
        if one["claim"].startswith("Seconds for all rounds on ")
        and "without the start of machines" in one["claim"]
    }
    as_many, baseline = (f"PPO, synchronous, {steps} a round" for steps in _STEPS[name])
    ours = (f"Stellaris{more}", f"Stellaris, neither actors nor learners wait{more}")
    return [found[one, theirs] for one in ours for theirs in (as_many, baseline)]


@pytest.mark.parametrize(
    "runs",
    [ON_HOPPER, pytest.param(FROM_PICTURES, marks=pytest.mark.slow)],
    ids=lambda runs: runs.experiment,
)
def test_the_first_row_is_that_of_the_report_which_reads_what_runs_recorded(runs: Runs) -> None:
    again = ratios(runs, place_of(PLACE, "no_startup"), SEEDS)
    assert again == pytest.approx(reported(runs.experiment), rel=0.02)


@pytest.mark.parametrize(("end", "most"), [("quick", 1.35), ("slow", 1.04)])
def test_runs_timed_again_take_what_trained_ones_take_where_actors_wait_and_no_less_elsewhere(
    end: str, most: float
) -> None:
    """The declared oracle of `stellaris_ends`, and how far its runs are from it where nobody waits."""
    assert find_experiment("stellaris_ends")
    place = place_of(PLACE, "no_startup")
    there = replace(place, stack=stacks.load(f"paper-stack-{end}-learners"))
    again, trained = ratios(ON_HOPPER, there, SEEDS), reported("stellaris_ends", f", calls {end}")
    assert again[:2] == pytest.approx(trained[:2], rel=0.03)
    for timed, value in zip(again[2:], trained[2:], strict=True):
        assert 1.0 < timed / value < most
