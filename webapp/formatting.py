"""How people read figures and states: scores, durations, ages, moments, counts, sizes, shares, money, tones and pills.

Pure functions: figures in, words out. What is not known is a dash, never a zero. Templates have them as filters
(`webapp/templatetags/look.py`), the browser's twin is static/js/format.js, and `cloud/formatting.py` holds what
messages of the machines need as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from math import ceil, floor, isfinite, log10
from typing import Literal, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from cloud.formatting import MINUS as MINUS
from cloud.formatting import UNKNOWN as UNKNOWN
from cloud.formatting import display_usd as display_usd
from cloud.formatting import format_percent as format_percent
from cloud.formatting import format_rough_duration as format_rough_duration
from cloud.formatting import plural as plural
from cloud.money.billing.price_book import PICODOLLARS_PER_USD


def format_count(value: int | None) -> str:
    """1,600."""
    return UNKNOWN if value is None else f"{value:,}"


def format_score(value: float | None, decimals: int = 1) -> str:
    """A return: one decimal below a thousand, none from there on."""
    if value is None or not isfinite(value):
        return UNKNOWN
    return f"{_as_written(value):z,.{decimals if abs(value) < 999.95 else 0}f}".replace("-", MINUS)


def format_duration(seconds: float | None) -> str:
    """8.2 s, 12 min 5 s, 3 h 20 min."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return MINUS + format_duration(-seconds)
    if seconds < 59.95:
        return f"{_as_written(seconds):.1f} s"
    whole = max(60, int(seconds))
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def format_short_duration(seconds: float | None) -> str:
    """As of a call or a round, to three digits: 350 ms, 8.21 s, 1,230 s."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return MINUS + format_short_duration(-seconds)
    if 0 < seconds <= 0.0005:
        return "< 1 ms"
    if 0 < seconds < 0.9995:
        return f"{_as_written(seconds * 1000):.0f} ms"
    digits = float(f"{_as_written(seconds):.3g}")
    return f"{digits:,.0f} s" if digits >= 1000 else f"{digits:g} s"


def _as_written(value: float) -> Decimal:
    """For rounding as browsers do, by the decimals that a figure is written with: 8.205 s is half-way to 8.21 s."""
    return Decimal(repr(float(value)))


def format_time_limit(seconds: float) -> str:
    """A time limit, rounded up so that it is never too short: 90 s, 3 min."""
    return f"{ceil(seconds)} s" if seconds <= 119 else f"{ceil(seconds / 60):,} min"


def format_age(seconds: float) -> str:
    """In its largest unit: now, 36 s, 12 min, 3 h, 2 d."""
    if seconds < 1:
        return "now"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def elapsed_element(moment: datetime | None, now: datetime, style: str = "ago") -> SafeString | str:
    """How long ago as a <time>, with the exact moment on hover. Scripts keep it true ("since": 12 min; "ago": 12 min
    ago)."""
    if moment is None:
        return UNKNOWN
    age = format_age((now - moment).total_seconds())
    if age == "now":
        return _elapsed_element(moment, style, age if style == "ago" else "a second")
    return _elapsed_element(moment, style, f"{age} ago" if style == "ago" else age)


@lru_cache(10_000)
def _elapsed_element(moment: datetime, style: str, text: str) -> SafeString:
    utc = moment.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" data-elapsed="{}">{}</time>',
        moment.isoformat(),
        f"{utc.day} {utc:%b %Y, %H:%M:%S} UTC",
        style,
        text,
    )


def format_day(day: date, *, short: bool = False) -> str:
    """3 March, or 3 Mar."""
    return f"{day.day} {day:%b}" if short else f"{day.day} {day:%B}"


def format_moment(moment: datetime, today: date | None = None) -> str:
    """14:20 UTC on 3 March; of a moment `today`, the time alone. Scripts add the reader's own time where it differs."""
    utc = moment.astimezone(UTC)
    return f"{utc:%H:%M} UTC" + ("" if utc.date() == today else f" on {format_day(utc)}")


def format_file_size(byte_count: int | None) -> str:
    """350 kB, 1.2 MB, in thousands as disks and downloads are counted; no file is smaller than 1 kB."""
    if byte_count is None:
        return UNKNOWN
    if byte_count < 999_500:
        return f"{max(1, round(byte_count / 1e3)) if byte_count else 0} kB"
    if byte_count < 999_950_000:
        return f"{byte_count / 1e6:.1f} MB"
    return f"{byte_count / 1e9:,.1f} GB"


def bar_share(part: int | None, whole: int | None) -> str:
    """A part of a whole in percent for drawing a bar, held between 0 and 100."""
    if not part or not whole:
        return "0"
    return f"{min(100.0, max(0.0, 100 * part / whole)):.2f}"


_UNPAID = {"simulated": "sim.", "emulated": "emul."}


def mark_unpaid(amount: str, word: str) -> SafeString | str:
    """ "$0.448 sim.": an amount with the kind of money that no one pays (`word`); real money as it is."""
    if not word:
        return amount
    text = f"{amount} {_UNPAID.get(word, word)}".strip()
    return format_html('<span class="unpaid" title="{}: no one pays it">{}</span>', word.capitalize(), text)


AxisTicks = tuple[tuple[str, str], ...]
"""How far along the axis, in percent, and the words."""


def svg_points(places: Iterable[tuple[float, float]]) -> str:
    """The `points` attribute of a polyline or polygon."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def nice_ticks(low: float, high: float, parts: int = 5) -> list[float]:
    """Round numbers that cover the range from low to high, at most `parts` steps and one apart; of a figure that never
    changes, a range of its own size."""
    largest = max(abs(low), abs(high))
    span = high - low if high - low > 1e-9 * largest else largest or 1.0
    rough = span / parts
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    first, last = floor(low / step), ceil(high / step)
    return [place * step for place in range(first, max(last, first + 1) + 1)]


def axis_of(
    low: float, high: float, start: float, end: float, of: Callable[[float], float] = float
) -> Callable[[float], float]:
    """Return where values are drawn on an axis from `low`, at `start`, to `high`, at `end`. `of`: log, or nothing."""
    return lambda value: start + (of(value) - of(low)) / (of(high) - of(low)) * (end - start)


def percent_ticks(most: float, place: Callable[[float], float], words: Callable[[int], str]) -> AxisTicks:
    """Three to five round numbers from 0 up to `most`: their places, in percent of the axis, and their words."""
    ticks = (tick for tick in nice_ticks(0.0, most, 4) if tick <= most)
    return tuple((f"{place(tick):.2f}%", words(round(tick))) for tick in ticks)


def format_axis_usd(picodollars: int) -> str:
    """At a tick of an axis: dollars and cents, or whole dollars: $1.50, not $1.5."""
    usd = (Decimal(picodollars) / PICODOLLARS_PER_USD).normalize()
    return f"${usd:,.2f}" if usd.as_tuple().exponent == -1 else f"${usd:,f}"


_LARGEST = 2**63 - 1
_MOST_DIGITS = 19


def read_whole(text: str, most: int = _LARGEST) -> int | None:
    """Return the whole number from 0 to `most` that the text is; None for any other text."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) > most:
        return None
    return int(text)


_GROUPED = re.compile(
    r"([+-]?)([1-9]\d{0,2}(?:(?P<mark>[,_ \u00a0\u202f])\d{3})(?:(?P=mark)\d{3})*)((?:\.\d*)?)"
)


def ungroup(text: str) -> str:
    """Return a typed number without "$" and without marks between thousands: 1500 of $1,500.

    A text whose comma may be that of decimals, such as 1,5, stays as it is, so that reading it as a number fails.
    """
    bare = text.strip().removeprefix("$").strip()
    match = _GROUPED.fullmatch(bare)
    return bare if match is None else f"{match[1]}{match[2].replace(match['mark'], '')}{match[4]}"


Tone = Literal["", "ok", "running", "waiting", "warning", "failed", "budget"]
"""Each is a class `tone-…` of static/css/states.css; empty for what is as usual."""


@dataclass(frozen=True)
class Pill:
    """A state in one word, with its colour and the shape of its icon (templates/jobs/pill.html)."""

    word: str
    tone: Tone
    icon: str


class Status(NamedTuple):
    """A state with a sentence that explains it. `waiting`: it changes by itself, so pages look again."""

    tone: Tone
    icon: str
    word: str
    sentence: str
    waiting: bool = False
