"""Statistics of few seeds, against rliable, against hand calculation, and by what must hold for any scores."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from training.statistics import (
    Reached,
    area_under,
    bootstrap,
    holm,
    improvement_interval,
    interquartile_mean,
    median_time,
    paired_bootstrap,
    paired_p_value,
    penalised_mean_time,
    probability_of_improvement,
    rank_correlation,
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


def test_identical_arms_come_out_equal() -> None:
    """A/A: over many experiments the probability is one half, and intervals contain equality about as often as said."""
    rng = np.random.default_rng(3)
    probabilities, equal_ratio = [], 0
    for trial in range(200):
        x, y = rng.normal(2000, 300, (2, 10))
        probabilities.append(probability_of_improvement(x, y))
        ratio = paired_bootstrap(x, y, repetitions=300, seed=trial)
        equal_ratio += ratio.low <= 1 <= ratio.high
    assert np.mean(probabilities) == pytest.approx(0.5, abs=0.03)
    assert 0.85 <= equal_ratio / 200 <= 0.99


POOLS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "log-normal": lambda rng, n: np.exp(0.3 * rng.standard_normal(n)),
    "two kinds of outcome": lambda rng, n: (
        np.where(rng.random(n) < 0.3, 2.0, 1.0) * np.exp(0.1 * rng.standard_normal(n))
    ),
    "skewed": lambda rng, n: 0.2 + rng.exponential(1.0, n),
}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 10, 20])
@pytest.mark.parametrize("pool", POOLS)
def test_intervals_of_few_pairs_cover_equality_as_often_as_they_say(pool: str, seeds: int) -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(1000):
        x, y = POOLS[pool](rng, seeds), POOLS[pool](rng, seeds)
        found = paired_bootstrap(x, y, repetitions=500, seed=trial)
        covered += found.low <= 1.0 <= found.high
    assert 0.93 <= covered / 1000 <= 0.97


def test_student_s_t_as_tables_have_it() -> None:
    for freedom, table in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)):
        assert student_t(0.95, freedom) == pytest.approx(table, rel=2e-3)
    assert student_t(0.95, None) == pytest.approx(1.95996, rel=1e-5)


def test_pairs_take_away_what_both_sides_share() -> None:
    rng = np.random.default_rng(1)
    shared = rng.normal(2000, 500, 10)
    ours, theirs = shared * 1.10 + rng.normal(0, 5, 10), shared
    ratio = paired_bootstrap(ours, theirs)
    assert ratio.value == pytest.approx(1.10, abs=0.01)
    assert 1.08 < ratio.low < ratio.high < 1.12
    difference = paired_bootstrap(ours, theirs, compare="difference")
    assert 0 < difference.low < difference.high


def test_several_environments_are_drawn_as_well() -> None:
    """Equal ratios everywhere leave no doubt; one environment that disagrees widens the interval to it."""
    theirs = np.full((5, 4), 1000.0)
    assert paired_bootstrap(theirs * 2, theirs) == pytest.approx((2, 2, 2))
    ours = theirs * np.array([2, 2, 2, 0.5])
    ratio = paired_bootstrap(ours, theirs, environments="drawn")
    assert ratio.value == pytest.approx(2**0.5)
    assert ratio.low <= 1 < ratio.high
    # Where environments are those there are, they leave no doubt about their mean.
    assert paired_bootstrap(ours, theirs) == pytest.approx((2**0.5,) * 3)


def test_a_threshold_counts_once_it_is_held() -> None:
    steps = [10, 20, 30, 40, 50, 60]
    assert time_to_threshold(steps, [1, 9, 1, 9, 9, 9], 9) == Reached(60, True)
    assert time_to_threshold(steps, [1, 9, 1, 9, 9, 9], 9, begin=True) == Reached(40, True)
    assert time_to_threshold(steps, [1, 9, 1, 9, 9, 1], 9) == Reached(60, False)
    assert time_to_threshold([], [], 9) == Reached(0, False)


def test_censored_times_stay_in_the_count() -> None:
    # By hand: 3/4 are left after 1, one of three leaves unseen, 3/8 are left after 2.
    times = [Reached(1, True), Reached(1.5, False), Reached(2, True), Reached(3, True)]
    assert median_time(times) == 2
    assert median_time([Reached(1, True), Reached(2, True), Reached(5, False), Reached(5, False)]) == 2
    assert median_time([Reached(1, True), Reached(5, False), Reached(5, False)]) is None
    assert penalised_mean_time([Reached(1, True), Reached(5, False)]) == 5.5


def test_the_area_is_the_mean_height() -> None:
    assert area_under([0, 10], [0, 100], 10) == 50
    assert area_under([5], [7], 10) == 7
    assert area_under([0, 5, 10], [0, 100, 100], 10) == 75
    assert area_under([0, 10, 20], [0, 100, 0], 10) == 50


@pytest.mark.parametrize("wrong", [[], [[]], [1, float("nan")], [1, float("inf")]])
def test_scores_that_are_none_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError):
        bootstrap(wrong)


def test_ratios_of_returns_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="differences"):
        paired_bootstrap([-100.0, -90.0], [-120.0, -80.0])


def test_holm_by_hand() -> None:
    """The least of three counts threefold, the next twice, and none less than one before it."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_p_value_is_of_the_interval_s_draws() -> None:
    ours, theirs = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    assert paired_p_value(ours, theirs) == pytest.approx(1 / 20_000)
    assert paired_p_value(ours, ours) == 1.0
    mixed = np.array([2.0, 1.0, 3.5, 3.5, 5.0])
    inside = paired_bootstrap(ours, mixed, compare="difference")
    assert inside.low <= 0 <= inside.high
    assert paired_p_value(ours, mixed, compare="difference") > 0.05


def test_rank_correlation_by_hand() -> None:
    """Ranks 1 2 3 4 against 1 2 4 3: 0.8 each with the third, and (1 − 0.64) / (1 − 0.64) = 1 between equals."""
    given = [1, 2, 3, 4]
    assert rank_correlation([1, 2, 4, 3], [10, 20, 40, 30], given) == pytest.approx(1)
    # Pairwise 0, 0.8 and 0.4: (0 − 0.32) / sqrt(0.36 · 0.84).
    assert rank_correlation([1, 2, 4, 3], [3, 1, 2, 4], given) == pytest.approx(
        -0.8 * 0.4 / (0.36 * 0.84) ** 0.5
    )
    # Nothing is left of what the third explains wholly, and ties share a rank.
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1], given) == 0.0
    assert rank_correlation([1, 1, 2, 2], [5, 5, 9, 9], [1, 2, 2, 1]) == pytest.approx(1)
