"""Statistics of experiments: pairs of seeds, families of claims, times and curves."""

from collections.abc import Callable

import numpy as np
import pytest

from research.statistics import (
    area_under,
    holm,
    median_time,
    paired_bootstrap,
    paired_p_value,
    penalised_mean_time,
    rank_correlation,
    student_tails,
)
from training.statistics.few_seeds import Reached, probability_of_improvement


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


POOLS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "log-normal": lambda rng, n: np.exp(0.3 * rng.standard_normal(n)),
    "two kinds": lambda rng, n: (
        np.where(rng.random(n) < 0.3, 2.0, 1.0) * np.exp(0.1 * rng.standard_normal(n))
    ),
    "skewed": lambda rng, n: 0.2 + rng.exponential(1.0, n),
}


_TRIALS = 3000


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "environments"), [(5, 1), (10, 1), (20, 1), (40, 1), (5, 3), (5, 4)])
@pytest.mark.parametrize("pool", POOLS)
def test_intervals_of_few_pairs_cover_equality_as_often_as_they_say(
    pool: str, seeds: int, environments: int
) -> None:
    """At every number of seeds and environments that experiments have. Five pairs of outcomes of two kinds in a single
    environment are the one case in which intervals are too wide: they cover 97.4 %.
    """
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(_TRIALS):
        x, y = POOLS[pool](rng, (seeds, environments)), POOLS[pool](rng, (seeds, environments))
        found = paired_bootstrap(x, y, repetitions=500, seed=trial)
        covered += found.low <= 1.0 <= found.high
    too_wide = (pool, seeds, environments) == ("two kinds", 5, 1)
    assert 0.93 <= covered / _TRIALS <= (0.98 if too_wide else 0.97)


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


def test_ratios_of_returns_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="differences"):
        paired_bootstrap([-100.0, -90.0], [-120.0, -80.0])


def test_holm_by_hand() -> None:
    """The least of three counts threefold, the next twice, and none less than one before it."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_p_value_goes_with_the_interval_s_draws() -> None:
    ours, theirs = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    # Each pair says one half, without any spread.
    assert paired_p_value(ours, theirs) == 1e-6
    assert paired_p_value(ours, ours) == 1.0
    mixed = np.array([2.0, 1.0, 3.5, 3.5, 5.0])
    inside = paired_bootstrap(ours, mixed, compare="difference")
    assert inside.low <= 0 <= inside.high
    assert paired_p_value(ours, mixed, compare="difference") > 0.05


def test_five_pairs_of_one_sign_are_weaker_evidence_than_their_draws_look() -> None:
    """No draw of them is beyond equality, so that a share of draws would be 0; a sign test says 0.0625."""
    theirs = np.full(5, 100.0)
    ours = np.array([101.0, 130.0, 115.0, 160.0, 104.0])
    p = paired_p_value(ours, theirs)
    assert 0.0625 < p < 0.3


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 16, 156])
def test_tails_are_students(freedom: int) -> None:
    from scipy import stats

    for t in (0.0, 0.5, 2.0, 5.0, 12.0):
        assert student_tails(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "environments"), [(5, 1), (5, 3)])
@pytest.mark.parametrize("pool", POOLS)
def test_a_family_of_claims_about_equal_arms_seldom_has_a_false_one(
    pool: str, seeds: int, environments: int
) -> None:
    """Forty claims by Holm: 3 of 60 families with a false one are meant, and of chance there are seldom more than 6."""
    rng = np.random.default_rng(1)
    families, false = 60, 0
    for _ in range(families):
        found = []
        for _ in range(40):
            x, y = POOLS[pool](rng, (seeds, environments)), POOLS[pool](rng, (seeds, environments))
            found.append(paired_p_value(x, y, repetitions=300))
        false += min(holm(found)) <= 0.05
    assert false <= 6


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
