"""What the papers' figures imply by arithmetic alone: how many actors a schedule can start, and what tables fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from cloud.billing.price_book import PICODOLLARS_PER_USD, PriceRow


def decayed_most(round_no: int, most: int, least: int, decay: float) -> int:
    """The most actors that a score of at most 1, decayed by round, can ask for (Nitro)."""
    share: float = decay**round_no
    return max(least, int(most * share))


def early_floor(round_no: int, most: int, least: int, decay: float) -> int:
    """The least actors of Nitro's released code: it floods the first rounds, whatever was measured."""
    return decayed_most(round_no * round_no, most, least, decay)


def doubling(round_no: int, first: int = 16, least: int = 8, most: int = 64, every: int = 10) -> int:
    """Hydrozoa as Nitro's authors ran it: doubled every tenth round, in force from the next one on."""
    if round_no == 1:
        return first
    return min(most, least << (round_no - 1) // every)


def creates_per_hour(actors: int, round_s: float) -> float:
    """How many actors an hour must create when each round starts all its own."""
    return actors * 3600 / round_s


@dataclass(frozen=True)
class TimeByFunctions:
    """A training whose time is `fixed_s` and work that n functions share: fixed_s + shared_s / n."""

    fixed_s: float
    shared_s: float

    @staticmethod
    def fit(seconds_by_functions: Mapping[int, float]) -> TimeByFunctions:
        """Least squares over what was measured."""
        points = [(1 / functions, seconds) for functions, seconds in seconds_by_functions.items()]
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        across = sum((x - mean_x) * (y - mean_y) for x, y in points)
        slope = across / sum((x - mean_x) ** 2 for x, _ in points)
        return TimeByFunctions(mean_y - slope * mean_x, slope)

    def seconds(self, functions: int) -> float:
        return self.fixed_s + self.shared_s / functions

    def scheduled_s(self, epochs_with: Mapping[int, int]) -> float:
        """The time of the same training when of its epochs so many run with so many functions: {functions: epochs}."""
        whole = sum(epochs * self.seconds(functions) for functions, epochs in epochs_with.items())
        return whole / sum(epochs_with.values())


def implied_gb(picodollars: int, function_s: float, duration: PriceRow) -> float:
    """The memory of a function that makes this bill out of so many function-seconds, at a price per GB-s."""
    return float(Fraction(picodollars, PICODOLLARS_PER_USD) / Fraction(duration.price)) / function_s


def per_hour(picodollars: int, seconds: float) -> float:
    """US dollars an hour that a bill over so many seconds implies."""
    return picodollars / PICODOLLARS_PER_USD * 3600 / seconds


def cut(before: float, after: float) -> float:
    """The share by which `after` is less than `before`."""
    return 1 - after / before
