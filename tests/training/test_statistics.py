"""Statistics of few seeds, against rliable, against hand calculation, and by what must hold for any scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from training.statistics.few_seeds import (
    Reached,
    bootstrap,
    improvement_interval,
    interquartile_mean,
    probability_of_improvement,
    student_t,
    time_to_threshold,
)

_scores = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.floats(1, 5000))


def _two_arms() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.normal(2300, 350, (10, 3)), rng.normal(2150, 400, (8, 3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_as_rliable_has_it() -> None:
    from rliable import library, metrics

    ours, theirs = _two_arms()

    def by_rliable(scores: object, function: object) -> tuple[float, np.ndarray]:
        # It draws from numpy's global generator, whatever `random_state` it is given.
        before = np.random.get_state()
        np.random.seed(0)
        try:
            points, intervals = library.get_interval_estimates({"arm": scores}, function, reps=600)
        finally:
            np.random.set_state(before)
        return float(points["arm"][0]), intervals["arm"].ravel()

    for scores in (ours, ours[:3, :1]):
        value, bounds = by_rliable(scores, lambda drawn: np.array([metrics.aggregate_iqm(drawn)]))
        found = bootstrap(scores)
        assert found.value == pytest.approx(value, rel=1e-12)
        # Two bootstraps agree up to the noise of drawing.
        assert found[1:] == pytest.approx(bounds, abs=0.12 * (bounds[1] - bounds[0]))
    value, bounds = by_rliable(
        (ours, theirs), lambda x, y: np.array([metrics.probability_of_improvement(x, y)])
    )
    found = improvement_interval(ours, theirs)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found[1:] == pytest.approx(bounds, abs=0.03)


@pytest.mark.parametrize(
    ("scores", "value"), [([1, 2, 30], 11), ([1, 2, 3, 40], 2.5), ([0, 10, 20, 30, 400], 20), ([7], 7)]
)
def test_the_interquartile_mean_cuts_a_quarter_rounded_down(scores: list[float], value: float) -> None:
    assert interquartile_mean(scores) == value


@settings(deadline=None, max_examples=40)
@given(_scores)
def test_an_interval_lies_within_the_scores_and_moves_with_them(scores: np.ndarray) -> None:
    found = bootstrap(scores, repetitions=100)
    assert scores.min() - 1e-6 <= found.low <= found.high <= scores.max() + 1e-6
    moved = bootstrap(scores * 2 + 5, repetitions=100)
    assert moved == pytest.approx([2 * bound + 5 for bound in found])


@settings(deadline=None, max_examples=40)
@given(_scores, st.integers(0, 1000))
def test_either_is_better_or_the_other(scores: np.ndarray, seed: int) -> None:
    others = np.random.default_rng(seed).permuted(scores, axis=0)[: max(1, len(scores) - 1)]
    assert probability_of_improvement(scores, scores) == pytest.approx(0.5)
    assert probability_of_improvement(scores, others) + probability_of_improvement(
        others, scores
    ) == pytest.approx(1)
    assert probability_of_improvement(scores + 5000, others) == 1


def test_student_s_t_as_tables_have_it() -> None:
    for freedom, table in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)):
        assert student_t(0.95, freedom) == pytest.approx(table, rel=2e-3)
    assert student_t(0.95, None) == pytest.approx(1.95996, rel=1e-5)


def test_a_threshold_counts_once_it_is_held() -> None:
    steps = [10, 20, 30, 40, 50, 60]
    assert time_to_threshold(steps, [1, 9, 1, 9, 9, 9], 9) == Reached(60, True)
    assert time_to_threshold(steps, [1, 9, 1, 9, 9, 9], 9, begin=True) == Reached(40, True)
    assert time_to_threshold(steps, [1, 9, 1, 9, 9, 1], 9) == Reached(60, False)
    assert time_to_threshold([], [], 9) == Reached(0, False)


@pytest.mark.parametrize("wrong", [[], [[]], [1, float("nan")], [1, float("inf")]])
def test_scores_that_are_none_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError):
        bootstrap(wrong)
