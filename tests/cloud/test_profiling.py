"""The choice of a function's memory, against cases worked by hand."""

from __future__ import annotations

import pytest

from cloud.accounts.profiling import ProfiledCall, Size, choice, sizes_of

USD = 10**12


def _size(memory_mb: int, seconds: float, usd: float) -> Size:
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
    assert "no call to a warm function" in cold_only.failure
    assert good.failure == ""


def test_the_cheapest_of_those_nearly_as_fast_as_the_fastest() -> None:
    # 1,024 is within 20 % of 2,048 (115 of 100) and 12 % cheaper (0.88 of 1.00); 512 is cheaper and too slow.
    found = choice([_size(512, 230.0, 0.80), _size(1024, 115.0, 0.88), _size(2048, 100.0, 1.00)])
    assert found is not None
    assert found.memory_mb == 1024
    assert found.why == "1,024 MB: 12 % cheaper per step than 2,048 MB and within 20 % of its speed."


def test_at_the_line_it_is_within_and_beyond_it_is_not() -> None:
    at = choice([_size(1024, 120.0, 0.90), _size(2048, 100.0, 1.00)])
    beyond = choice([_size(1024, 120.1, 0.90), _size(2048, 100.0, 1.00)])
    assert at is not None
    assert beyond is not None
    assert (at.memory_mb, beyond.memory_mb) == (1024, 2048)
    assert beyond.why == "2,048 MB: the fastest. 1,024 MB would be 10 % cheaper per step and 20 % slower."


def test_beyond_a_whole_core_memory_buys_nothing() -> None:
    # As on Lambda: one thread is no faster with more than 1,769 MB, and dearer by the second.
    found = choice([_size(1024, 173.0, 1.0), _size(1769, 100.0, 1.0), _size(3008, 100.0, 1.7)])
    assert found is not None
    assert (found.memory_mb, found.why) == (1769, "1,769 MB: the fastest, and none is cheaper per step.")


def test_one_size_alone_says_so_and_none_is_no_choice() -> None:
    one = choice([_size(1024, 1.0, 1.0), Size(128, failure="killed")])
    assert one is not None
    assert one.why == "1,024 MB: the only size that could be measured."
    assert choice([Size(128, failure="killed")]) is None
    assert choice([]) is None


def test_what_is_hardly_cheaper_is_not_called_nothing() -> None:
    found = choice([_size(1024, 110.0, 0.996), _size(2048, 100.0, 1.0)])
    assert found is not None
    assert "< 1 % cheaper" in found.why
