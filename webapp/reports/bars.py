"""Spend over time as bars, for the page and for paper."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple


class Bar(NamedTuple):
    """What was spent from the first to the last of some days."""

    first: date
    last: date
    picodollars: int


class Bars(NamedTuple):
    bars: list[Bar]
    highest: int
    """The top of the axis."""
    levels: list[int]
    """About four round amounts from zero to the top; zero alone if nothing was spent."""


def bars_of(by_day: Mapping[date, int], most_bars: int) -> Bars:
    """A bar for each day, or for several days where there are more than `most_bars`."""
    days = list(by_day.items())
    each = max(1, -(-len(days) // most_bars))
    chunks = [days[at : at + each] for at in range(0, len(days), each)]
    bars = [Bar(chunk[0][0], chunk[-1][0], sum(amount for _, amount in chunk)) for chunk in chunks]
    most = max((bar.picodollars for bar in bars), default=0)
    if most <= 0:
        return Bars(bars, 1, [0])
    rough = max(1, most // 4)
    size = 10 ** (len(str(rough)) - 1)
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    highest = step * -(-most // step)
    return Bars(bars, highest, list(range(0, highest + 1, step)))
