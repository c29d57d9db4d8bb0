"""Where returns fall while arms train, a verdict about the end says so itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from research.claims import Higher, NotWorse
from research.experiment import Cell, experiment_names, find_experiment
from research.reports.cost_report import cost_verdicts, late_sentence
from research.reports.judging import part_sentence, undecided
from research.reports.outcomes import RunOutcome, Summary, decline_sentence, training_sentence
from tests.research.tiny_experiment import CART, TINY
from webapp.comparing.papers.figures import find_result

SEEDS = range(5)


def summary(arm: str, readings: list[tuple[float, float]], environment: str = CART) -> Summary:
    """An arm whose seeds were read twice, the second time at their end."""

    def run(seed: int, first: float, last: float) -> RunOutcome:
        rows = [
            {"kind": "begin", "made_with": {}},
            {"kind": "evaluation", "round": 1, "return_mean": first, "returns": [first]},
            {"kind": "evaluation", "round": 2, "return_mean": last, "returns": [last]},
            {"kind": "final", "returns": [last]},
            {"kind": "end"},
        ]
        return RunOutcome(Cell(arm, environment, seed), rows)

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


def trained(arm: str, scores: list[tuple[float, float]]) -> Summary:
    """An arm whose seeds scored so in training, and so at their final evaluation."""

    def run(seed: int, training: float, final: float) -> RunOutcome:
        rows = [
            {"kind": "begin", "made_with": {}},
            {"kind": "round", "round": 1, "env_steps": 9, "episodes": 100, "episode_return_mean": training},
            {"kind": "final", "returns": [final]},
            {"kind": "end"},
        ]
        return RunOutcome(Cell(arm, CART, seed), rows)

    return Summary(arm, CART, len(scores), tuple(run(seed, *pair) for seed, pair in enumerate(scores)))


ENDS = (99.0, 104.0, 97.0, 103.0, 100.0)


@pytest.mark.parametrize(
    ("training", "finals", "said"),
    [
        ([80.0, 81.0, 79.0, 82.0, 80.0], ENDS, "the ratio is 0.80 ["),
        ([80.0, 81.0, 79.0, 82.0, 80.0], [130.0, 131.0, 129.0, 132.0, 130.0], "the ratio is 0.80 ["),
        # Nothing is said where both meters agree, or training decides nothing either.
        ([80.0, 81.0, 79.0, 82.0, 80.0], [70.0, 71.0, 69.0, 72.0, 70.0], ""),
        ([100.0, 101.0, 99.0, 101.0, 99.0], ENDS, ""),
        ([80.0, 81.0, 79.0, 82.0, -1.0], ENDS, ""),
        # An evaluation without a return that ratios could be of says nothing itself.
        ([100.0, 101.0, 99.0, 101.0, 99.0], (0.0, 5.0, 0.0, 0.0, 0.0), "the ratio is 1.00 ["),
    ],
)
def test_what_training_says_otherwise_is_said(
    training: list[float], finals: tuple[float, ...], said: str
) -> None:
    ours = trained("a", list(zip(training, finals, strict=True)))
    theirs = trained("b", [(100.0 + n % 2, 100.0) for n in range(5)])
    words = training_sentence(("a", "b"), (CART,), [ours, theirs])
    assert (said in words) if said else not words
    assert training_sentence(("a", "b"), ("Pendulum-v1",), [ours, theirs]) == ""


def test_complete_runs_without_a_return_decide_nothing_and_are_not_missing() -> None:
    ours, against = TINY.arms[0].name, TINY.arms[1].name
    claims = (
        Higher(arm=ours, against=(against,), environments=(CART,)),
        NotWorse(arm=ours, against=against, environment=CART, margin=0.8),
    )
    experiment = TINY.model_copy(update={"claims": claims, "targets": {}})
    summaries = [trained(arm, [(80.0 + n, 0.0) for n in range(5)]) for arm in (ours, against)]
    for one in cost_verdicts(experiment, summaries, {}, draws=0):
        assert one.verdict == undecided(5)
        assert one.reason.endswith("A return is not above 0, so that a ratio says nothing.")
        assert "By the last 100 episodes of training" in one.reason


def test_a_verdict_on_a_part_of_the_declared_seeds_says_so_first() -> None:
    ours, against = TINY.arms[0].name, TINY.arms[1].name
    claims = (Higher(arm=ours, against=(against,), environments=(CART,)),)
    experiment = TINY.model_copy(update={"claims": claims, "targets": {}})
    whole = [trained(arm, [(100.0 + n, 100.0 + n) for n in range(5)]) for arm in (ours, against)]
    parts = [replace(one, planned=10) for one in whole]
    (part,), (all_of_it,) = (cost_verdicts(experiment, one, {}, draws=0) for one in (parts, whole))
    assert part.reason == f"{part_sentence(5, 10)} {all_of_it.reason}"
    (none,) = cost_verdicts(experiment, [replace(one, outcomes=()) for one in parts], {}, draws=0)
    assert none.verdict == "open"
    assert "declared" not in none.reason


def test_stored_verdicts_of_claims_that_were_declared_late_say_so() -> None:
    late = 0
    for name in experiment_names():
        results = find_result(name)
        for claim in find_experiment(name).claims if results else ():
            late += bool(sentence := late_sentence(claim))
            said = [one for one in (results or {})["verdicts"] if sentence in one["reason"]]
            assert said, f"{name}: {claim}"
    assert late > 10
