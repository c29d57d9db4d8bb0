"""Siren's printed figures: which follow from which, each under its condition."""

from __future__ import annotations

import pytest

from cloud.money.billing.paper_formulas import FORMULAS, FormulaRound
from cloud.money.billing.price_book import PICODOLLARS_PER_USD, PriceBook
from cloud.money.pricing import PricedPart, lines_of, total
from research import calculation
from research.siren_tables import (
    GRID,
    MOST_FUNCTIONS,
    SIREN,
    TOY,
    TOY_DYNAMIC,
    TOY_MB,
    TOY_SERVER,
    grid_fit,
    grid_usd_per_function_s,
    implied_mb,
    least_load_share,
    least_usd_of_a_whole_job,
    sizes_mb,
    toy_fit,
    toy_schedule,
    toy_usd,
    toy_with_a_load,
    toy_with_fewer_epochs,
    usd_per_function_s,
)

REACHED = (300, 200, 100)


def test_both_rows_of_the_toy_example_imply_256_mb() -> None:
    implied = [implied_mb(row.usd, functions * row.seconds) for functions, row in TOY.items()]
    assert implied == [pytest.approx(246, abs=0.5), pytest.approx(254, abs=0.5)]
    assert [64 * round(memory_mb / 64) for memory_mb in implied] == [TOY_MB, TOY_MB]


def test_all_dollars_of_the_toy_example_follow_from_its_times_within_5_percent() -> None:
    for functions, row in TOY.items():
        assert toy_usd(functions * row.seconds) == pytest.approx(row.usd, rel=0.05)
        times = FormulaRound(row.seconds, 0.0, (row.seconds,) * functions, memory_mb=TOY_MB)
        formula = FORMULAS["siren"].cost((times,), PriceBook.load()) / PICODOLLARS_PER_USD
        assert formula == pytest.approx(toy_usd(functions * row.seconds), rel=1e-6)
    hour = (
        total(lines_of((PricedPart(PriceBook.load().row("c5.2xlarge")),), 3600 * 10**9)) / PICODOLLARS_PER_USD
    )
    assert hour == 0.34
    assert hour * TOY_SERVER.seconds / 3600 == pytest.approx(TOY_SERVER.usd, rel=0.05)


def test_the_toy_cost_of_20_functions_was_cut_after_three_decimals_not_rounded() -> None:
    usd = toy_usd(20 * TOY[20].seconds)
    assert usd == pytest.approx(0.0198, abs=0.00005)
    assert int(1000 * usd) / 1000 == TOY[20].usd
    assert round(usd, 3) != TOY[20].usd


@pytest.mark.parametrize("epochs", [2, 5, 20, 100])
def test_the_dynamic_toy_row_does_not_follow_at_equal_epochs(epochs: int) -> None:
    taken = toy_fit().scheduled(toy_schedule(epochs), epochs)
    assert taken.seconds == pytest.approx(237.4 + 36.0 / epochs, abs=0.1)
    assert taken.seconds > TOY[20].seconds > TOY_DYNAMIC.seconds


@pytest.mark.parametrize("epochs", range(6, 42))
def test_with_fewer_epochs_the_dynamic_toy_row_has_its_time_but_not_its_dollars(epochs: int) -> None:
    fewer, taken = toy_with_fewer_epochs(epochs)
    assert 2 < fewer < epochs
    assert taken.seconds == pytest.approx(TOY_DYNAMIC.seconds)
    assert 0.0170 <= toy_usd(taken.function_s) <= 0.01771


@pytest.mark.parametrize("epochs", [4, 5, 42, 100, 10_000])
def test_no_other_number_of_epochs_gives_its_dollars_either(epochs: int) -> None:
    _, taken = toy_with_fewer_epochs(epochs)
    assert toy_usd(taken.function_s) < 0.0185


@pytest.mark.parametrize("epochs", [37, 38, 41, 60, 100, 1000])
def test_a_load_in_the_first_epoch_gives_time_and_cut_dollars_from_37_epochs_on(epochs: int) -> None:
    load_s, taken = toy_with_a_load(epochs)
    assert load_s == pytest.approx(850, rel=0.02)
    assert taken.seconds == pytest.approx(TOY_DYNAMIC.seconds)
    assert int(1000 * toy_usd(taken.function_s)) / 1000 == TOY_DYNAMIC.usd


@pytest.mark.parametrize("epochs", [10, 30, 36])
def test_below_37_epochs_no_load_gives_its_dollars(epochs: int) -> None:
    """A function-second costs the same whatever it does, so that another load has the same price."""
    _, taken = toy_with_a_load(epochs)
    assert toy_usd(taken.function_s) > 0.0200


def test_the_grid_fits_a_fixed_time_and_shared_work_within_a_thousandth() -> None:
    fit = grid_fit()
    assert fit.fixed_s == pytest.approx(1949, rel=0.001)
    assert fit.shared_s == pytest.approx(418_200, rel=0.001)
    for budget in REACHED:
        assert fit.seconds(GRID[budget].most) == pytest.approx(GRID[budget].seconds, rel=0.001)


def test_the_grid_implies_8_7_to_8_9_gb_which_is_three_times_the_largest_size() -> None:
    for budget in REACHED:
        row = GRID[budget]
        assert row.seconds is not None
        assert 8.7 <= implied_mb(row.usd, row.most * row.seconds) / 1024 <= 8.9
        assert grid_usd_per_function_s(budget) / usd_per_function_s(3008) == pytest.approx(3.0, abs=0.03)


def test_138_000_choices_are_3_000_functions_of_46_sizes() -> None:
    assert (len(sizes_mb()), sizes_mb()[-1]) == (46, 3008)
    assert MOST_FUNCTIONS * len(sizes_mb()) == 138_000


@pytest.mark.parametrize(("budget", "cut"), [(300, 36.0), (200, 12.9), (100, 10.0)])
def test_the_cuts_of_time(budget: int, cut: float) -> None:
    grid_s, siren_s = GRID[budget].seconds, SIREN[budget].seconds
    assert grid_s is not None
    assert siren_s is not None
    assert 100 * (1 - siren_s / grid_s) == pytest.approx(cut, abs=0.05)


@pytest.mark.parametrize(("budget", "least_s"), [(300, 2417), (200, 2649)])
def test_rows_of_300_and_200_dollars_cannot_come_from_numbers_of_functions_alone(
    budget: int, least_s: float
) -> None:
    """At the grid's fit and epochs, with the most functions of the row in every epoch, whatever that costs."""
    row = SIREN[budget]
    found = grid_fit().seconds(row.most)
    assert found == pytest.approx(least_s, abs=1)
    assert row.seconds is not None
    assert found > row.seconds


def test_the_row_of_300_dollars_paid_45_percent_more_for_a_function_second_so_it_changed_memory() -> None:
    row = SIREN[300]
    assert row.seconds is not None
    least = row.usd / (row.most * row.seconds)
    assert least / grid_usd_per_function_s(300) == pytest.approx(1.45, abs=0.005)


@pytest.mark.parametrize(("epochs", "percent"), [(10, 42), (50, 37), (1000, 36)])
def test_the_row_of_100_dollars_needs_a_load_of_more_than_a_third_of_the_work(
    epochs: int, percent: float
) -> None:
    """By numbers of functions only, at the price that the grid paid for the same budget."""
    assert 100 * least_load_share(100, epochs) == pytest.approx(percent, abs=0.5)


def test_with_alike_epochs_equal_numbers_are_best_so_the_row_of_100_dollars_cannot_follow() -> None:
    """All its dollars spent on equal numbers of functions take longer than it did."""
    row, fit = SIREN[100], grid_fit()
    functions = (row.usd / grid_usd_per_function_s(100) - fit.shared_s) / fit.fixed_s
    assert row.seconds is not None
    assert row.fewest < functions < row.most
    assert fit.seconds(functions) > row.seconds
    uneven = [(round(0.7 * functions), 10.0), (round(1.3 * functions), 10.0)]
    assert fit.scheduled(uneven, 20).seconds > fit.scheduled([(round(functions), 20.0)], 20).seconds


def test_the_grids_row_of_50_dollars_must_fail() -> None:
    """At the memory of the grid: less memory may cost less, so nothing follows for Siren's own."""
    assert least_usd_of_a_whole_job() == pytest.approx(61, abs=0.2)
    assert least_usd_of_a_whole_job() > 50


@pytest.mark.parametrize("name", ["siren_toy", "siren_simulation"])
def test_the_calculations_say_what_the_tests_hold(name: str) -> None:
    tables, statements = calculation.find(name).compute(True)
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
    verdicts = [one.verdict for one in statements]
    assert (
        verdicts
        == {
            "siren_toy": ["holds", "does not hold", "does not hold", "holds"],
            "siren_simulation": ["holds", "holds", *["does not hold"] * 3, "holds"],
        }[name]
    )
