"""Spend over time as bars: days put together, and round amounts beside them."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from webapp.reports.table import bars_of

FIRST = date(2026, 1, 1)


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=400), st.integers(1, 100))
def test_every_day_is_in_one_bar_below_the_top(amounts: list[int], most_bars: int) -> None:
    found = bars_of({FIRST + timedelta(days=at): amount for at, amount in enumerate(amounts)}, most_bars)
    assert len(found.bars) <= most_bars
    assert sum(bar.picodollars for bar in found.bars) == sum(amounts)
    assert sum((bar.last - bar.first).days + 1 for bar in found.bars) == len(amounts)
    assert max(bar.picodollars for bar in found.bars) <= found.highest
    assert found.levels[0] == 0
    assert len(found.levels) <= 11


def test_levels_are_round_amounts_and_nothing_has_none() -> None:
    assert bars_of({FIRST: 37}, 10).levels == [0, 10, 20, 30, 40]
    assert bars_of({FIRST: 0}, 10) == ([(FIRST, FIRST, 0)], 1, [0])
