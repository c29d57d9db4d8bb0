"""What Siren's slides print of its toy example and its simulation, and the arithmetic that these figures follow or not.

    T(n) = a + b / n        a: seconds that no function shortens, b: function-seconds of work
    an epoch of E with n functions takes (a + b / n) / E

A one-time load of L function-seconds is part of b; the first epoch does all of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from cloud.money.billing.price_book import PriceBook

SMALLEST_MB, LARGEST_MB, STEP_MB = 128, 3008, 64
"""The sizes of a function on Lambda in the years of the slides."""
MOST_FUNCTIONS = 3000


class Toy(NamedTuple):
    """A row of the toy example: its dollars have three decimals."""

    seconds: float
    usd: float


class Simulated(NamedTuple):
    """A row of the simulation: the fewest and the most functions of any epoch, and whether it reached its target."""

    fewest: int
    most: int
    usd: float
    seconds: float | None


TOY: dict[int, Toy] = {20: Toy(237.40, 0.019), 150: Toy(50.04, 0.031)}
TOY_SERVER = Toy(307.87, 0.029)
TOY_DYNAMIC = Toy(202.55, 0.019)
TOY_FIRST, TOY_BETWEEN, TOY_LAST = 120, 20, 10
TOY_MB = 256
GRID: dict[int, Simulated] = {
    300: Simulated(828, 828, 299.89, 2452.3),
    200: Simulated(482, 482, 199.67, 2816.9),
    100: Simulated(138, 138, 99.99, 4979.7),
    50: Simulated(3000, 3000, 47.76, None),
}
"""By budget in dollars: the number of functions that a grid search found."""
SIREN: dict[int, Simulated] = {
    300: Simulated(652, 892, 299.92, 1569.5),
    200: Simulated(355, 597, 199.73, 2454.4),
    100: Simulated(56, 258, 99.82, 4480.4),
    50: Simulated(1293, 2995, 49.82, None),
}


def usd_per_function_s(memory_mb: float) -> float:
    """Return what a second of one function costs."""
    return memory_mb / 1024 * float(Fraction(PriceBook.load().row("lambda.duration.x86").price))


def implied_mb(usd: float, function_s: float) -> float:
    """Return the memory at which so many function-seconds cost so much."""
    return usd / function_s / usd_per_function_s(1.0)


class Taken(NamedTuple):
    """What a schedule takes."""

    seconds: float
    function_s: float


@dataclass(frozen=True)
class TimeByFunctions:
    """A training that takes `fixed_s` and work that n functions share: fixed_s + shared_s / n."""

    fixed_s: float
    shared_s: float

    @staticmethod
    def fit(seconds_by_functions: Mapping[int, float]) -> TimeByFunctions:
        """Return the least squares over what was measured."""
        points = [(1 / functions, seconds) for functions, seconds in seconds_by_functions.items()]
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        across = sum((x - mean_x) * (y - mean_y) for x, y in points)
        slope = across / sum((x - mean_x) ** 2 for x, _ in points)
        return TimeByFunctions(mean_y - slope * mean_x, slope)

    def seconds(self, functions: float) -> float:
        return self.fixed_s + self.shared_s / functions

    def scheduled(self, schedule: Sequence[tuple[int, float]], epochs: int, load_s: float = 0.0) -> Taken:
        """Return what pairs of functions and epochs take, in order, of a training of `epochs` in all."""
        each_s, shared_s = self.fixed_s / epochs, (self.shared_s - load_s) / epochs
        seconds, function_s = load_s / schedule[0][0], load_s
        for functions, count in schedule:
            epoch_s = each_s + shared_s / functions
            seconds += count * epoch_s
            function_s += count * functions * epoch_s
        return Taken(seconds, function_s)


def toy_fit() -> TimeByFunctions:
    return TimeByFunctions.fit({functions: row.seconds for functions, row in TOY.items()})


def toy_schedule(epochs: float) -> list[tuple[int, float]]:
    """Return the slides' dynamic row: 120 functions in the first epoch, 10 in the last, 20 between."""
    return [(TOY_FIRST, 1), (TOY_BETWEEN, epochs - 2), (TOY_LAST, 1)]


def toy_with_fewer_epochs(epochs: int) -> tuple[float, Taken]:
    """Return the epochs, as a real number, after which the dynamic row's time has passed where fixed numbers of
    functions take `epochs`; and what they take.
    """
    fit = toy_fit()
    ends_s = fit.scheduled(toy_schedule(2), epochs).seconds
    between = (TOY_DYNAMIC.seconds - ends_s) / fit.scheduled([(TOY_BETWEEN, 1)], epochs).seconds
    return between + 2, fit.scheduled(toy_schedule(between + 2), epochs)


def toy_with_a_load(epochs: int) -> tuple[float, Taken]:
    """Return the load of the first epoch that gives the dynamic row's time at equal epochs; and what that takes."""
    fit, schedule = toy_fit(), toy_schedule(epochs)
    none_s, one_s = (fit.scheduled(schedule, epochs, load_s).seconds for load_s in (0.0, 1.0))
    load_s = (TOY_DYNAMIC.seconds - none_s) / (one_s - none_s)
    return load_s, fit.scheduled(schedule, epochs, load_s)


def toy_usd(function_s: float) -> float:
    return function_s * usd_per_function_s(TOY_MB)


def grid_fit() -> TimeByFunctions:
    return TimeByFunctions.fit({row.most: row.seconds for row in GRID.values() if row.seconds is not None})


def grid_usd_per_function_s(budget: int) -> float:
    """Return what the grid's row for this budget paid for a function-second."""
    row = GRID[budget]
    assert row.seconds is not None
    return row.usd / (row.most * row.seconds)


def least_load_share(budget: int, epochs: int) -> float:
    """Return the least share of all work that the first epoch must do alone, if Siren's row for this budget is to have
    its time and dollars at the grid's price of a function-second and by numbers of functions only.

    The dollars fix the mean number of functions. At that mean, the least time has the most functions in the epoch with
    most work, and equal numbers in all others.
    """
    fit, row = grid_fit(), SIREN[budget]
    assert row.seconds is not None
    mean = (row.usd / grid_usd_per_function_s(budget) - fit.shared_s) / fit.fixed_s

    def least_s(share: float) -> float:
        others = (1 - share) / epochs
        first = share + others
        # n_t in proportion to the root of an epoch's work is the least time.
        wished = epochs * mean / (1 + (epochs - 1) * math.sqrt(others / first))
        n = min(float(row.most), wished)
        rest = (epochs * mean - n) / (epochs - 1)
        return fit.fixed_s + fit.shared_s * (first / n + (epochs - 1) * others / rest)

    low, high = 0.0, 1.0 - 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if least_s(middle) > row.seconds else (low, middle)
    return high


def least_usd_of_a_whole_job() -> float:
    """Return what the grid's work costs without any fixed time, at the lowest price of its rows."""
    return grid_fit().shared_s * min(grid_usd_per_function_s(budget) for budget in (300, 200, 100))


def sizes_mb() -> range:
    return range(SMALLEST_MB, LARGEST_MB + 1, STEP_MB)
