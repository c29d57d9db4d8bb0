"""Words that messages of the machines and pages share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.formatting import display_usd, format_percent, format_rough_duration, plural


@pytest.mark.parametrize(
    ("picodollars", "text"),
    [
        (0, "$0.00"),
        (1_250_000_000_000, "$1.25"),
        (11_333_333_333, "$0.0113"),
        (200_000, "$0.000000200"),
        (1_250 * 10**12, "$1,250.00"),
        (999_900_000_000, "$1.00"),
        (-5 * 10**11, "-$0.500"),
    ],
)
def test_amounts_for_people(picodollars: int, text: str) -> None:
    assert display_usd(picodollars) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0.0 s"),
        (0.004, "0.1 s"),
        (4.21, "4.2 s"),
        (-4.21, "−4.2 s"),
        (9.95, "10 s"),
        (36.4, "36 s"),
        (99.4, "99 s"),
        (99.5, "1 min 40 s"),
        (107.7, "1 min 48 s"),
        (599.5, "10 min"),
        (2160, "36 min"),
        (99.5 * 60, "1.7 h"),
        (9000, "2.5 h"),
        (36_000_000, "10,000.0 h"),
    ],
)
def test_about_how_long(seconds: float | None, text: str) -> None:
    assert format_rough_duration(seconds) == text


@pytest.mark.parametrize(
    ("part", "whole", "decimals", "text"),
    [
        (1, 0, 0, "–"),
        (0, 5, 0, "0 %"),
        (77, 100, 0, "77 %"),
        (0.4, 100, 0, "< 1 %"),
        (0.5, 100, 0, "< 1 %"),
        (0.6, 100, 0, "1 %"),
        (0.04, 100, 1, "< 0.1 %"),
        (77.34, 100, 1, "77.3 %"),
        (-3.44, 100, 1, "−3.4 %"),
        (-0.0001, 100, 1, "0.0 %"),
    ],
)
def test_shares(part: float, whole: float, decimals: int, text: str) -> None:
    assert format_percent(part, whole, decimals) == text


@given(st.integers(1, 10**18), st.integers(1, 10**18), st.integers(0, 2))
def test_what_is_a_part_at_all_never_reads_as_nothing(part: int, whole: int, decimals: int) -> None:
    assert float(format_percent(part, whole, decimals).strip("< %")) > 0


def test_plurals() -> None:
    calls = [plural(number, "call") for number in (0, 1, 2, 1600)]
    assert calls == ["0 calls", "1 call", "2 calls", "1,600 calls"]
    assert [plural(number, "is", "are") for number in (1, 3)] == ["1 is", "3 are"]
