"""Where returns fall while arms train, a verdict about the end says so itself."""

from __future__ import annotations

import pytest

from research.claims import Higher, NotWorse
from research.experiment import Cell, Experiment
from research.reports.cost_report import cost_verdicts
from research.reports.outcomes import Outcome, Summary, decline_sentence
from research.reports.verdicts import verdicts
from tests.research.tiny_experiment import CART, TINY

SEEDS = range(5)


def summary(arm: str, readings: list[tuple[float, float]], environment: str = CART) -> Summary:
    """An arm whose seeds were read twice, the second time at their end."""

    def run(seed: int, first: float, last: float) -> Outcome:
        rows = [
            {"kind": "begin", "made_with": {}},
            {"kind": "evaluation", "round": 1, "return_mean": first, "returns": [first]},
            {"kind": "evaluation", "round": 2, "return_mean": last, "returns": [last]},
            {"kind": "final", "returns": [last]},
            {"kind": "end"},
        ]
        return Outcome(Cell(arm, environment, seed), rows)

    runs = tuple(run(seed, *pair) for seed, pair in zip(SEEDS, readings, strict=True))
    return Summary(arm, environment, len(runs), runs)


FALLING = [(280.0 + seed, 250.0 - seed) for seed in SEEDS]
FALLING_FURTHER = [(260.0 + seed, 200.0 - seed) for seed in SEEDS]
RISING = [(20.0 + seed, 250.0 + seed) for seed in SEEDS]


def test_an_arm_fell_where_four_seeds_of_five_end_below_their_first_reading() -> None:
    assert summary("a", FALLING).fell == (282.0, 248.0)
    assert summary("a", RISING).fell is None
    assert summary("a", [*FALLING[:4], (20.0, 30.0)]).fell is not None
    assert summary("a", [*FALLING[:3], (20.0, 30.0), (20.0, 30.0)]).fell is None
    assert Summary("a", CART, 5, ()).fell is None


def test_it_is_said_where_both_sides_fell_and_nowhere_else() -> None:
    words = decline_sentence(("a", "b"), (CART,), [summary("a", FALLING), summary("b", FALLING_FURTHER)])
    assert "from 282 to 248 and from 262 to 198" in words
    for other in (summary("b", RISING), summary("b", FALLING, "Pendulum-v1")):
        assert decline_sentence(("a", "b"), (CART,), [summary("a", FALLING), other]) == ""


@pytest.mark.parametrize(("theirs", "said"), [(FALLING_FURTHER, True), (RISING, False)])
def test_verdicts_of_what_ends_higher_say_it_first(theirs: list[tuple[float, float]], said: bool) -> None:
    ours, against = TINY.arms[0].name, TINY.arms[1].name
    claims = (
        Higher(arm=ours, against=(against,), environments=(CART,)),
        NotWorse(arm=ours, against=against, environment=CART, margin=0.8),
    )
    experiment = Experiment.model_validate({**dict(TINY), "claims": claims})
    summaries = [summary(ours, FALLING), summary(against, theirs)]
    found = [
        *cost_verdicts(experiment, summaries, {}, draws=0),
        *verdicts(experiment, summaries),
    ]
    assert len(found) == 2
    for verdict in found:
        assert verdict.reason.startswith(f"On {CART} the evaluated returns of both fell") == said, verdict
