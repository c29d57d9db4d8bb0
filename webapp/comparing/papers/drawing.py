"""Rulers and curves of the pages of experiments, as numbers that a template puts into SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from webapp.formatting import axis_of, nice_ticks, svg_points

RULER_WIDTH, _RULER_MARGIN = 240.0, 10.0
_Marks = tuple[tuple[float, str], ...]
# Near and, for what is beyond, far. No difference is in the middle of each.
_RATIOS: tuple[_Marks, ...] = (
    ((1 / 4, "¼"), (1 / 2, "½"), (1, "1"), (2, "2"), (4, "4")),
    ((1 / 64, "1/64"), (1 / 8, "⅛"), (1, "1"), (8, "8"), (64, "64")),
)
_SPANS: tuple[_Marks, ...] = (
    ((-1, "−1"), (-1 / 2, "−½"), (0, "0"), (1 / 2, "½"), (1, "1")),
    ((-4, "−4"), (-2, "−2"), (0, "0"), (2, "2"), (4, "4")),
)
# To the right there is room for half of the last tick's words.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 520.0, 260.0, 56.0, 24.0, 10.0, 36.0
_WORDS_HEIGHT = 14.0
_LOG_FROM = 20.0
_MOST_ROWS = 12
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Ruler:
    """One figure with its interval on a line, beside no difference or a declared limit, and the paper's own figure."""

    none: float
    low: float
    middle: float
    high: float
    paper: float | None
    ticks: tuple[tuple[float, str], ...]


def ruler(
    interval: dict[str, float], *, ratio: bool, paper: float | None = None, limit: float | None = None
) -> Ruler:
    """Ratios on a logarithmic line from a quarter to four times, differences and correlations from −1 to 1; on a longer
    one where that does not hold all of it. `limit`: what it is judged by, where that is not no difference.
    """
    shown = [*interval.values(), *([] if paper is None else [paper])]
    near, far = _RATIOS if ratio else _SPANS
    marks = near if near[0][0] <= min(shown) and max(shown) <= near[-1][0] else far
    least, most = marks[0][0], marks[-1][0]
    along = axis_of(least, most, _RULER_MARGIN, RULER_WIDTH - _RULER_MARGIN, math.log if ratio else float)

    def place(value: float) -> float:
        return along(min(max(value, least), most))

    return Ruler(
        place((1.0 if ratio else 0.0) if limit is None else limit),
        place(interval["low"]),
        place(interval["value"]),
        place(interval["high"]),
        None if paper is None else place(paper),
        tuple((place(value), words) for value, words in marks),
    )


@dataclass(frozen=True)
class PaperCurve:
    """A curve; `place` is its colour and dash. `band` is an outline, where an interval is known."""

    name: str
    place: int
    points: str
    band: str
    last: float


@dataclass(frozen=True)
class PaperPanel:
    """Curves over one pair of axes, with a sentence that says the same."""

    title: str
    x_words: str
    y_words: str
    lines: tuple[PaperCurve, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    level: float | None
    level_words: str
    logarithmic: bool
    rows: tuple[tuple[str, ...], ...]
    """The same as a table: a place on the horizontal axis, and each line's height there."""
    width: float = _WIDTH
    height: float = _HEIGHT
    left: float = _LEFT
    right: float = _WIDTH - _RIGHT
    bottom: float = _HEIGHT - _BOTTOM

    @property
    def level_words_at(self) -> float:
        """The foot of the level's words: above its line, or below it where there is no room above."""
        assert self.level is not None
        return self.level - 6 if self.level >= _WORDS_HEIGHT + 6 else self.level + _WORDS_HEIGHT

    @property
    def sentence(self) -> str:
        ends = "; ".join(f"{line.name} ends at {line.last:,.3g}" for line in self.lines)
        return f"{self.title}: {self.y_words} over {self.x_words}. {ends}."


@dataclass(frozen=True)
class Series:
    name: str
    points: Points
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def panel(
    title: str,
    series: Sequence[Series],
    *,
    x_words: str,
    y_words: str,
    level: float | None = None,
    level_words: str = "",
    from_zero: bool = True,
) -> PaperPanel:
    """Values that lie far apart and above zero are drawn logarithmically, which the axis says."""
    xs = [x for curve in series for x, _ in curve.points]
    ys = [y for curve in series for _, y in curve.points] + ([] if level is None else [level])
    ys += [value for curve in series for value in (*curve.low, *curve.high)]
    logarithmic = min(ys) > 0 and max(ys) / min(ys) > _LOG_FROM and not any(curve.low for curve in series)
    x_end = max(xs)
    x_ticks = [tick for tick in nice_ticks(min(0.0, *xs), x_end) if tick <= x_end]
    if logarithmic:
        powers = range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1)
        y_ticks = [10.0**power for power in powers]
    else:
        y_ticks = nice_ticks(min(0.0, *ys) if from_zero else min(ys), max(ys))
    across = axis_of(x_ticks[0], x_end, _LEFT, _WIDTH - _RIGHT)
    up = axis_of(y_ticks[0], y_ticks[-1], _HEIGHT - _BOTTOM, _TOP, math.log10 if logarithmic else float)

    def outline(curve: Series) -> str:
        if not curve.low:
            return ""
        there = [(x, high) for (x, _), high in zip(curve.points, curve.high, strict=True)]
        back = [(x, low) for (x, _), low in zip(curve.points, curve.low, strict=True)]
        return svg_points((across(x), up(y)) for x, y in (*there, *reversed(back)))

    lines = tuple(
        PaperCurve(
            curve.name,
            place,
            svg_points((across(x), up(y)) for x, y in curve.points),
            outline(curve),
            curve.points[-1][1],
        )
        for place, curve in enumerate(series, start=1)
    )
    return PaperPanel(
        title,
        x_words,
        y_words,
        lines,
        tuple((across(tick), _short(tick)) for tick in x_ticks),
        tuple((up(tick), _short(tick)) for tick in y_ticks),
        None if level is None else up(level),
        level_words,
        logarithmic,
        _rows(series, sorted(set(xs))),
    )


def _rows(series: Sequence[Series], xs: Sequence[float]) -> tuple[tuple[str, ...], ...]:
    """Rows of the table: evenly spaced places from the first to the last, few enough to read."""
    if len(xs) > _MOST_ROWS:
        step = (xs[-1] - xs[0]) / (_MOST_ROWS - 1)
        xs = [xs[0] + step * at for at in range(_MOST_ROWS)]
    return tuple((f"{x:,.4g}", *(_height_words(curve.points, x) for curve in series)) for x in xs)


def _height_words(points: Points, x: float) -> str:
    """A line's height at x, between its points as it is drawn; a dash beyond its ends."""
    if not points[0][0] <= x <= points[-1][0]:
        return "–"
    for (left, low), (right, high) in pairwise(points):
        if left <= x <= right:
            share = (x - left) / (right - left) if right > left else 1.0
            return f"{low + share * (high - low):,.4g}"
    return f"{points[0][1]:,.4g}"


def _short(value: float) -> str:
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    text = f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:,g}"
    return text.replace("-", "−")
