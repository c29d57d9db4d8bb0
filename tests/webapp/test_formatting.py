"""How people read figures, by the server and by the browser: at the edges, and for anything at all."""

import base64
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from webapp import formatting as words
from webapp.jobs.billing.cost_csv import harmless
from webapp.money.amounts import picodollars

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SCRIPT = Path(__file__).resolve().parents[2] / "static" / "js" / "format.js"
_NOW = datetime(2026, 3, 3, 14, 20, tzinfo=UTC)

SCORES = [
    (None, "–"),
    (float("nan"), "–"),
    (float("inf"), "–"),
    (0.0, "0.0"),
    (-0.04, "0.0"),
    (0.25, "0.2"),
    (0.35, "0.4"),
    (0.75, "0.8"),
    (-146.25, "−146.2"),
    (999.94, "999.9"),
    (999.95, "1,000"),
    (1000, "1,000"),
    (-1234.5, "−1,234"),
    (1234567.8, "1,234,568"),
]
LOSSES = [(0.03125, "0.0312"), (2.0, "2.0000"), (-0.00004, "0.0000"), (1234.5, "1,234")]
DURATIONS = [
    (None, "–"),
    (0, "0.0 s"),
    (8.24, "8.2 s"),
    (8.25, "8.2 s"),
    (-8.24, "−8.2 s"),
    (59.9, "59.9 s"),
    (59.97, "1 min 0 s"),
    (60, "1 min 0 s"),
    (725, "12 min 5 s"),
    (3599.9, "59 min 59 s"),
    (3600, "1 h 0 min"),
    (12_000, "3 h 20 min"),
    (3_600_000 + 59, "1,000 h 0 min"),
]
SHORT_DURATIONS = [
    (None, "–"),
    (0, "0 s"),
    (0.0001, "< 1 ms"),
    (0.0005, "< 1 ms"),
    (0.0125, "12 ms"),
    (0.35, "350 ms"),
    (0.9996, "1 s"),
    (1.0, "1 s"),
    (-0.35, "−350 ms"),
    (8.205, "8.2 s"),
    (8.215, "8.22 s"),
    (8.125, "8.12 s"),
    (59.96, "60 s"),
    (999.4, "999 s"),
    (999.6, "1,000 s"),
    (1234.5, "1,230 s"),
    (1_234_567.0, "1,230,000 s"),
]
AGES = [
    (-5, "now"),
    (0.9, "now"),
    (1, "1 s"),
    (59.9, "59 s"),
    (60, "1 min"),
    (3599, "59 min"),
    (3600, "1 h"),
    (86_399, "23 h"),
    (86_400, "1 d"),
]
COUNTS = [(None, "–"), (0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")]
AMOUNTS = [
    ("0", "$0.00"),
    ("0.000000000001", "$0.000000000001"),
    ("0.0123456", "$0.0123"),
    ("0.5", "$0.500"),
    ("0.9994", "$0.999"),
    ("0.9999", "$1.00"),
    ("1.005", "$1.01"),
    ("999.995", "$1,000.00"),
    ("-1234.5", "-$1,234.50"),
    ("1234567", "$1,234,567.00"),
]

CELLS = [
    ("=1+1", "'=1+1"),
    ("@x", "'@x"),
    ("-2", "'-2"),
    ("  -2+3", "'  -2+3"),
    ("\t=1", "'\t'=1"),
    ("\tfine", "'\tfine"),
    ("\r+1", "'\r'+1"),
    ("\u00a0\u3000=1", "'\u00a0\u3000=1"),
    ("\u200b\ufeff@x", "'\u200b\ufeff@x"),
    ("\x00=1", "'\x00=1"),
    ("\uff1d1+1", "'\uff1d1+1"),
    (" \uff0b1", "' \uff0b1"),
    ("\uff0d1", "'\uff0d1"),
    ("\uff20x", "'\uff20x"),
    ("\ufe631", "'\ufe631"),
    ("\u22121", "'\u22121"),
    ("a; =1+1", "a;' =1+1"),
    ("a\n=1+1", "a\n'=1+1"),
    ("fine = 1 + 1 - 2", "fine = 1 + 1 - 2"),
    ("user@example.org", "user@example.org"),
    (-2, "-2"),
    (-2.5, "-2.5"),
    (None, ""),
]

NUMBERS = [
    ("1500", "1500"),
    ("1,500", "1500"),
    ("$ 1,234,567.50", "1234567.50"),
    ("1 500", "1500"),
    ("-2,000", "-2000"),
    ("1,5", "1,5"),
    ("0,500", "0,500"),
    ("1234,567", "1234,567"),
    ("1,50 ", "1,50"),
    ("1 500,000", "1 500,000"),
    ("1 5", "1 5"),
    ("1.500,00", "1.500,00"),
    ("1e6", "1e6"),
    ("", ""),
]


def _cases(table: list[tuple[Any, str]]) -> Any:
    return pytest.mark.parametrize(("figure", "text"), table)


@_cases(SCORES)
def test_scores(figure: float | None, text: str) -> None:
    assert words.format_score(figure) == text


@_cases(LOSSES)
def test_scores_with_decimals_of_their_own(figure: float, text: str) -> None:
    assert words.format_score(figure, decimals=4) == text


def test_scores_that_are_whole_anyway() -> None:
    assert [words.format_score(one, decimals=0) for one in (475, -146.7, 2383)] == ["475", "−147", "2,383"]


@_cases(DURATIONS)
def test_durations(figure: float | None, text: str) -> None:
    assert words.format_duration(figure) == text


@_cases(SHORT_DURATIONS)
def test_short_durations(figure: float | None, text: str) -> None:
    assert words.format_short_duration(figure) == text


@_cases(AGES)
def test_ages(figure: float, text: str) -> None:
    assert words.format_age(figure) == text


@_cases(COUNTS)
def test_counts(figure: int | None, text: str) -> None:
    assert words.format_count(figure) == text


@_cases(AMOUNTS)
def test_amounts(figure: str, text: str) -> None:
    assert words.display_usd(picodollars(Decimal(figure))) == text


@_cases(CELLS)
def test_no_text_of_a_file_is_a_formula_of_a_spreadsheet(figure: Any, text: str) -> None:
    assert harmless(figure) == text


@_cases(NUMBERS)
def test_only_commas_between_thousands_leave_a_typed_number(figure: str, text: str) -> None:
    assert words.ungroup(figure) == text


@given(st.text(st.sampled_from(" \t\r\n\u00a0\u2003\ufeff=+-@\uff1d;a"), max_size=8))
def test_no_part_of_a_cell_begins_with_a_sign_once_it_is_trimmed(text: str) -> None:
    for part in re.split("[;\t\r\n]", harmless(text)):
        assert not part.strip().strip("\ufeff").strip().startswith(("=", "+", "-", "@", "\uff1d"))


@pytest.mark.browser
def test_the_browser_writes_figures_as_the_server_does(page: "Page") -> None:
    code = base64.b64encode(_SCRIPT.read_bytes()).decode()
    tables = {
        "score": [case for case in SCORES if case[0] is None or abs(case[0]) < 1e9],
        "duration": DURATIONS,
        "shortTime": SHORT_DURATIONS,
        "elapsed": AGES,
        "count": COUNTS,
        "harmless": CELLS,
        "ungroup": NUMBERS,
        "money": [*AMOUNTS, (None, "–"), ("", "–"), (0.25, "$0.250"), (1e-7, "$0.000000100")],
    }
    for name, cases in tables.items():
        written = page.evaluate(
            """async ([url, name, figures]) => {
                const written = (await import(url))[name];
                return figures.map((figure) => written(figure));
            }""",
            [f"data:text/javascript;base64,{code}", name, [figure for figure, _ in cases]],
        )
        assert written == [text for _, text in cases], name
    for figure, text in LOSSES:
        written = page.evaluate(
            "async ([url, figure]) => (await import(url)).score(figure, 4)",
            [f"data:text/javascript;base64,{code}", figure],
        )
        assert written == text
    for number in (0, 1, 2, 1600):
        written = page.evaluate(
            "async ([url, number]) => (await import(url)).plural(number, 'call')",
            [f"data:text/javascript;base64,{code}", number],
        )
        assert written == words.plural(number, "call")


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_what_took_time_never_reads_as_nothing(seconds: float) -> None:
    for shown in (
        words.format_rough_duration(seconds),
        words.format_short_duration(seconds),
        words.format_time_limit(seconds),
    ):
        assert float(shown.strip("< ").split()[0].replace(",", "")) > 0


@given(st.floats(min_value=0, max_value=1e7))
def test_no_duration_is_off_by_more_than_it_shows(seconds: float) -> None:
    for shown, off in (
        (words.format_duration(seconds), 0.05 if seconds < 59.95 else 1 if seconds < 3600 else 60),
        (words.format_rough_duration(seconds), 0.11 if seconds < 9.95 else 0.51 if seconds < 600 else 181),
    ):
        assert abs(_seconds(shown) - seconds) <= off + 1e-6, shown
    assert _seconds(words.format_time_limit(seconds)) >= seconds


@given(st.floats(min_value=0, max_value=1e7), st.floats(min_value=0, max_value=1e7))
def test_a_longer_duration_never_reads_as_shorter(one: float, other: float) -> None:
    less, more = sorted((one, other))
    for form in (words.format_duration, words.format_rough_duration, words.format_time_limit):
        assert _seconds(form(less)) <= _seconds(form(more)) + 1e-9


def _seconds(shown: str) -> float:
    """What a duration's text says."""
    parts = shown.replace(",", "").split()
    sizes = {"s": 1, "min": 60, "h": 3600}
    return sum(float(parts[at]) * sizes[parts[at + 1]] for at in range(0, len(parts), 2))


def test_a_limit_of_time_is_rounded_up() -> None:
    limits = [words.format_time_limit(seconds) for seconds in (0.2, 90, 119, 119.5, 121)]
    assert limits == ["1 s", "90 s", "119 s", "2 min", "3 min"]


@pytest.mark.parametrize(
    ("byte_count", "text"),
    [
        (None, "–"),
        (0, "0 kB"),
        (1, "1 kB"),
        (350_400, "350 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (1_249_000, "1.2 MB"),
        (999_950_000, "1.0 GB"),
        (2 * 10**12, "2,000.0 GB"),
    ],
)
def test_sizes_of_files(byte_count: int | None, text: str) -> None:
    assert words.format_file_size(byte_count) == text


def test_moments_and_days_are_utc() -> None:
    elsewhere = _NOW.astimezone(timezone(timedelta(hours=11)))
    assert words.format_moment(elsewhere) == "14:20 UTC on 3 March"
    assert words.format_moment(elsewhere, today=date(2026, 3, 3)) == "14:20 UTC"
    assert words.format_moment(elsewhere, today=date(2026, 3, 4)) == "14:20 UTC on 3 March"
    assert words.format_day(date(2026, 9, 22), short=True) == "22 Sep"


def test_how_long_ago_is_an_element_that_scripts_keep_true() -> None:
    then = _NOW - timedelta(minutes=12, seconds=30)
    element = words.elapsed_element(then, _NOW)
    assert strip_tags(element) == "12 min ago"
    assert 'data-elapsed="ago"' in element
    assert 'title="3 Mar 2026, 14:07:30 UTC"' in element
    assert strip_tags(words.elapsed_element(then, _NOW, "since")) == "12 min"
    assert strip_tags(words.elapsed_element(_NOW, _NOW)) == "now"
    assert words.elapsed_element(None, _NOW) == "–"


@pytest.mark.parametrize(
    ("part", "whole", "width"),
    [(None, 5, "0"), (3, 0, "0"), (1, 3, "33.33"), (9, 3, "100.00"), (-1, 3, "0.00")],
)
def test_a_bar_is_never_wider_than_its_place(part: int | None, whole: int | None, width: str) -> None:
    assert words.bar_share(part, whole) == width


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 2891.4), (0, 1e-3), (5, 5), (-1200, -100)])
def test_ticks_cover_what_is_drawn(low: float, high: float) -> None:
    ticks = words.nice_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 9


@pytest.mark.parametrize("value", [0.0, 500.0, 0.3, 3e6, -2e7])
def test_ticks_around_a_figure_that_never_changes_are_apart(value: float) -> None:
    ticks = words.nice_ticks(value, value)
    assert len({f"{tick:.3g}" for tick in ticks}) == len(ticks) >= 2


def test_ticks_of_an_axis_have_cents_or_none() -> None:
    ticks = [words.format_axis_usd(tick * 10**10) for tick in (0, 5, 150, 200, 120_000)]
    assert ticks == ["$0", "$0.05", "$1.50", "$2", "$1,200"]
