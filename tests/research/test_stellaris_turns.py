"""What would turn Stellaris' times: other numbers change only what they name, and the first row is the report's."""

from __future__ import annotations

import json
import math

import pytest

from cloud.numbers.stack import Update
from research.calculations.stellaris_turns import CHANGES, ratios, stored_run
from research.pricing_targets import place_of
from research.reports.break_even import usual_round_s
from research.stellaris import PLACE, SEEDS
from webapp.papers.figures import RESULTS

EXPECTED: dict[str, tuple[set[str], set[str]]] = {
    "as assumed": (set(), set()),
    "a gradient takes nothing beside reading and samples": ({"gradient_ms"}, set()),
    "an aggregation reads a megabyte in 1 ms, not 5": ({"apply_us_per_megabyte"}, set()),
    "both": ({"gradient_ms", "apply_us_per_megabyte"}, set()),
    "each learner has a GPU of its own": (set(), {"learner_machines"}),
    "a sample takes learners 30 µs on both sides": ({"gpu_mlp"}, set()),
    "the same, with a GPU of its own each": ({"gpu_mlp"}, {"learner_machines"}),
}
"""What differs of the stack's updates, and of what is bought."""


@pytest.mark.parametrize("words", CHANGES)
def test_a_change_changes_what_it_names_and_nothing_else(words: str) -> None:
    place = place_of(PLACE, "no_startup")
    there = CHANGES[words](place)
    bought = {
        name
        for name in type(place.options).model_fields
        if getattr(place.options, name) != getattr(there.options, name)
    }
    assert there.profile == place.profile
    if words.startswith("our own software"):
        assert bought == {"stack"}
        return
    before, after = place.stack.update, there.stack.update
    changed = {name for name in Update.model_fields if getattr(before, name) != getattr(after, name)}
    assert (changed, bought) == EXPECTED[words]
    assert there.stack.model_copy(update={"update": before}) == place.stack


def test_shorter_calls_make_no_run_longer() -> None:
    place = place_of(PLACE, "no_startup")
    usual, shorter_gradient, shorter_reading, both = (
        usual_round_s(stored_run("stellaris", SEEDS[0]), CHANGES[words](place)) for words in list(CHANGES)[:4]
    )
    assert both < min(shorter_gradient, shorter_reading) < max(shorter_gradient, shorter_reading) < usual


def test_the_first_row_is_that_of_the_report_which_reads_what_runs_recorded() -> None:
    stored = json.loads((RESULTS / "stellaris_82k.json").read_text())
    reported = {
        (one["asked"]["ours"], one["asked"]["theirs"]): one["figures"]["interval"]["value"]
        for one in stored["verdicts"]
        if one["claim"].startswith("Seconds for all rounds on Hopper-v5, without the start of machines")
    }
    baseline = "PPO, synchronous, 10 steps of 4,096 a round"
    as_many = "PPO, synchronous, 40 steps of 1,024 a round"
    flowing = "Stellaris, neither actors nor learners wait"
    compared = [("Stellaris", as_many), ("Stellaris", baseline), (flowing, as_many), (flowing, baseline)]
    for pair, value in zip(compared, ratios(place_of(PLACE, "no_startup"), SEEDS), strict=True):
        assert math.isclose(value, reported[pair], rel_tol=0.02), pair
