"""The choice of a function's memory, against cases worked by hand."""

from __future__ import annotations

import pytest

from cloud.accounts.profiling import ProfiledCall, Size, choice, sizes_of

USD = 10**12


def measured_size(memory_mb: int, seconds: float, usd: float) -> Size:
    return Size(memory_mb, seconds, round(usd * USD), calls=3)


def test_a_size_is_its_middle_warm_call_for_a_million_steps() -> None:
    runs = [
        ProfiledCall(1024, 1000, billed_s=2.4, start_s=1.4, cold=True, picodollars=99_000_000),
        ProfiledCall(1024, 1000, billed_s=1.0, picodollars=17_000_000),
        ProfiledCall(1024, 1000, billed_s=9.0, picodollars=150_000_000),  # someone else took the core
        ProfiledCall(1024, 1000, billed_s=1.2, picodollars=20_200_000),
    ]
    # 1.2 s for 1,000 steps are 1,200 s for a million; 20.2 millionths of a dollar are 2 cents.
    assert sizes_of(runs) == [Size(1024, pytest.approx(1200.0), 20_200_000_000, 1.4, 3)]


def test_money_of_a_million_steps_is_rounded_half_up_once() -> None:
    (size,) = sizes_of([ProfiledCall(512, 3_000_000, billed_s=1.0, picodollars=10)])
    assert size.picodollars_per_million == 3
    (size,) = sizes_of([ProfiledCall(512, 4_000_000, billed_s=1.0, picodollars=10)])
    assert size.picodollars_per_million == 3  # 2.5


def test_a_failed_call_fails_its_size_and_no_other() -> None:
    runs = [
        ProfiledCall(128, failure="the function was killed, mostly for lack of memory"),
        ProfiledCall(512, 100, billed_s=3.0, cold=True),
        ProfiledCall(1024, 100, billed_s=1.0, picodollars=5),
    ]
    small, cold_only, good = sizes_of(runs)
    assert "lack of memory" in small.failure
    assert "warm function" in cold_only.failure
    assert good.failure == ""


def test_what_is_hardly_cheaper_is_not_called_nothing() -> None:
    found = choice([measured_size(1024, 110.0, 0.996), measured_size(2048, 100.0, 1.0)])
    assert found is not None
    assert "< 1 % cheaper" in found.why
