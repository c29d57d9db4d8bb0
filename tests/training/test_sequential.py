"""The sequential test of pairs: how often it errs, how often it finds what is there, and where it looks."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from training.statistics.sequential import (
    FEWEST_PAIRS,
    LEVEL,
    MOST_PAIRS,
    Answer,
    compare_pairs,
    looks,
    next_look,
    pairs_needed,
)

Draw = Callable[[np.random.Generator, int], np.ndarray]


def _skewed(rng: np.random.Generator, pairs: int) -> np.ndarray:
    return 300 * rng.lognormal(0, 1, pairs)


def _some_fail(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """As in reinforcement learning: most seeds learn, and some learn nothing."""
    return np.where(rng.random(pairs) < 0.3, 20.0, rng.normal(2500, 200, pairs))


def _often_equal(rng: np.random.Generator, pairs: int) -> np.ndarray:
    """Most seeds reach an environment's largest return."""
    return np.minimum(500.0, rng.normal(520, 60, pairs))


RETURNS: dict[str, Draw] = {
    "normal": lambda rng, pairs: rng.normal(100, 15, pairs),
    "skewed": _skewed,
    "some fail": _some_fail,
    "often equal": _often_equal,
}


def test_a_thousand_tests_of_two_equal_sides_err_in_at_most_five_percent() -> None:
    rng = np.random.default_rng(0)
    false = 0
    for at in range(1_000):
        draw = list(RETURNS.values())[at % len(RETURNS)]
        most = (6, 8, 13)[at % 3]
        answer = compare_pairs(draw(rng, most) - draw(rng, most), most)
        false += answer.sign != 0
    assert false <= 50


@pytest.mark.parametrize("most", [6, 8, 11])
def test_over_all_signs_of_any_differences_the_share_of_answers_is_at_most_the_level(most: int) -> None:
    sizes = np.random.default_rng(most).lognormal(0, 1, most)
    every = [compare_pairs(sizes * signs, most).sign != 0 for signs in product((-1, 1), repeat=most)]
    assert 0 < np.mean(every) <= LEVEL


@pytest.mark.parametrize("effect", [2.0, 1.5])
def test_a_difference_of_the_size_that_was_requested_is_found_in_four_of_five_tests(effect: float) -> None:
    rng, pairs = np.random.default_rng(1), pairs_needed(effect)
    found = [compare_pairs(rng.normal(effect, 1, pairs) - rng.normal(0, 1, pairs), pairs) for _ in range(400)]
    assert np.mean([answer.sign == 1 for answer in found]) >= 0.8
    assert np.mean([answer.pairs for answer in found]) < pairs, "it ends early"


@pytest.mark.slow
@pytest.mark.parametrize("effect", [1.0, 0.75])
def test_small_differences_are_found_as_often(effect: float) -> None:
    rng, pairs = np.random.default_rng(2), pairs_needed(effect)
    found = [
        compare_pairs(rng.normal(effect, 1, pairs) - rng.normal(0, 1, pairs), pairs) for _ in range(3_000)
    ]
    assert np.mean([answer.sign == 1 for answer in found]) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("draw", RETURNS.values(), ids=RETURNS)
@pytest.mark.parametrize("most", [6, 13, 24])
def test_each_kind_of_return_and_number_of_pairs_errs_in_at_most_five_percent(draw: Draw, most: int) -> None:
    rng, tests = np.random.default_rng(3), 2_000
    false = sum(compare_pairs(draw(rng, most) - draw(rng, most), most).sign != 0 for _ in range(tests))
    assert false / tests <= LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / tests)


def test_the_answer_has_the_sign_of_the_differences_and_stays_when_more_pairs_come() -> None:
    assert compare_pairs([3.0] * 6, 8) == Answer(1, 6)
    assert compare_pairs([-3.0] * 6, 8) == Answer(-1, 6)
    assert compare_pairs([3.0] * 6 + [-50.0, -50.0], 8) == Answer(1, 6)


def test_without_a_difference_or_before_the_first_look_there_is_no_answer() -> None:
    assert compare_pairs([0.0] * 8, 8) == Answer(0, 8)
    assert compare_pairs([9.0] * 5, 8) == Answer(0, 0)
    assert compare_pairs([], 8) == Answer(0, 0)
    with pytest.raises(ValueError, match="finite"):
        compare_pairs([1.0, float("nan")], 8)


@pytest.mark.parametrize("most", range(FEWEST_PAIRS, MOST_PAIRS + 1))
def test_every_number_of_pairs_has_looks_that_end_with_the_last_pair(most: int) -> None:
    found = looks(most)
    assert list(found) == sorted(set(found))
    assert found[-1] == most
    assert len(found) <= 8
    assert compare_pairs([1.0] * found[0], most).sign == 1, "the first look can give an answer"
    assert next_look(0, most) == found[0]
    assert next_look(most, most) == most


def test_what_takes_too_many_pairs_is_refused() -> None:
    assert pairs_needed(2.0) < pairs_needed(1.0) < pairs_needed(0.75) <= MOST_PAIRS
    assert pairs_needed(50.0) == FEWEST_PAIRS
    with pytest.raises(ValueError, match="more than 50 pairs"):
        pairs_needed(0.3)
    with pytest.raises(ValueError, match="6 to 50"):
        looks(5)
