"""A run as a line of text and as HTML with a chart of its score, all in one piece so that nothing is fetched; and where
it is watched: a notebook's cell, whose picture is replaced in place, or a terminal's line."""

from __future__ import annotations

import bisect
import importlib
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from html import escape
from typing import Any, NamedTuple, Protocol

from .output_columns import TRAINING_SCORE
from .tables import usd

_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 30
_MOST_POINTS = 300
_MEAN_POINTS = 80
_BLUE = "#2b87c8"  # distinct on a light and on a dark page
_TEXT = "font: 12px system-ui, sans-serif; fill: currentColor; opacity: .75"
_UNREAL = {"simulated": "sim.", "emulated": "emulated"}

Point = tuple[float, float]


class Words(NamedTuple):
    """What a kind of training calls its score and its progress: return and steps, loss and samples."""

    score: str
    progress: str


def words_of(job: dict[str, Any]) -> Words:
    return Words(job["score"]["name"], job["progress_unit"])


def line_of(name: str, jobs: Sequence[dict[str, Any]]) -> str:
    """The run in one line: name, state, progress, score and money."""
    return " · ".join([name, *_figures(jobs)])


def html_of(
    name: str, url: str, jobs: Sequence[dict[str, Any]], curves: Sequence[Sequence[dict[str, Any]]]
) -> str:
    """The run for a notebook: its name, which leads to its page, its figures, and its score by step."""
    state, *figures = _figures(jobs)
    head = (
        f'<a href="{escape(url)}" style="font-weight: 600; color: inherit">{escape(name)}</a>'
        f'<div style="font-size: 13px; opacity: .75">{" · ".join(map(escape, [state, *figures]))}</div>'
    )
    words = words_of(jobs[0]) if jobs else Words("return", "steps")
    lines = [_points(curve, words) for curve in curves]
    label = escape(line_of(name, jobs))
    return f'<div style="max-width: {_WIDTH}px"><div>{head}</div>{_chart(lines, label, words)}</div>'


def _figures(jobs: Sequence[dict[str, Any]]) -> list[str]:
    """State, progress, score and money, those that are known."""
    if not jobs:
        return ["no jobs"]
    words = words_of(jobs[0])
    basis, scores = _scores(jobs)
    rounds = min(job["round_no"] for job in jobs)
    found = [
        _states(jobs),
        f"{jobs[0]['round_name']} {rounds:,}" if rounds else "",
        f"{sum(j['env_steps'] for j in jobs):,} {words.progress}",
    ]
    if scores:
        found.append(f"{basis} {words.score} {sum(scores) / len(scores):,.4g}")
    spent, limit = (
        sum((Decimal(job[key]) for job in jobs), Decimal(0)) for key in ("spent_usd", "limit_usd")
    )
    unreal = " ".join(sorted({_UNREAL[job["money"]] for job in jobs if job["money"] in _UNREAL}))
    found.append(f"{usd(spent)} of {usd(limit)}" + (f" {unreal}" if unreal else ""))
    return [line for line in found if line]


def _scores(jobs: Sequence[dict[str, Any]]) -> tuple[str, list[float]]:
    """What the jobs are judged by, and their scores: evaluated, if each that has begun was evaluated."""
    begun = [job["evaluation_return_mean"] for job in jobs if job["round_no"]]
    if begun and None not in begun:
        return "evaluated", begun
    return "training", [job[TRAINING_SCORE] for job in jobs if job[TRAINING_SCORE] is not None]


def _states(jobs: Sequence[dict[str, Any]]) -> str:
    """ "Running", or how many of several jobs are in which state."""
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job["state_words"]] = counts.get(job["state_words"], 0) + 1
    if len(counts) == 1:
        return (
            f"{len(jobs)} seeds {next(iter(counts)).lower()}"
            if len(jobs) > 1
            else str(jobs[0]["state_words"])
        )
    return ", ".join(f"{count} {word.lower()}" for word, count in counts.items())


def _points(curve: Iterable[dict[str, Any]], words: Words) -> list[Point]:
    """The curve's known points, at most so many as a screen can show."""
    score, progress = words
    known = [(float(row[progress]), float(row[score])) for row in curve if row[score] is not None]
    every = max(1, math.ceil(len(known) / _MOST_POINTS))
    return [*known[:-1:every], *known[-1:]]


def _chart(lines: Sequence[Sequence[Point]], label: str, words: Words) -> str:
    drawn = [line for line in lines if line]
    if not drawn:
        return f'<p style="opacity: .75">No round with a training {escape(words.score)} has ended yet.</p>'
    xs = [x for line in drawn for x, _ in line]
    ys = [y for line in drawn for _, y in line]
    right, low, high = max(xs), min(ys), max(ys)
    if high == low:
        low, high = low - 1, high + 1

    def place(x: float, y: float) -> str:
        across = _LEFT + (x / right if right else 0) * (_WIDTH - _LEFT - _RIGHT)
        down = _TOP + (high - y) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)
        return f"{across:.1f},{down:.1f}"

    parts = [*_grid(low, high, right, place, words.progress)]
    for line in drawn:
        faint = 0.4 if len(drawn) > 1 else 1
        parts.append(_line([place(x, y) for x, y in line], 1.5, faint))
    if len(drawn) > 1:
        parts.append(_line([place(x, y) for x, y in _mean(drawn)], 2.5, 1))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}"'
        f' style="width: 100%; height: auto">{"".join(parts)}</svg>'
    )


def _line(places: Sequence[str], width: float, opacity: float) -> str:
    if len(places) == 1:
        x, y = places[0].split(",")
        return f'<circle cx="{x}" cy="{y}" r="3" fill="{_BLUE}" opacity="{opacity}"/>'
    return (
        f'<polyline points="{" ".join(places)}" fill="none" stroke="{_BLUE}" stroke-width="{width}"'
        f' stroke-linejoin="round" opacity="{opacity}"/>'
    )


def _grid(low: float, high: float, right: float, place: Any, progress: str) -> Iterable[str]:
    """Lines at round scores with their values, and round numbers of steps below."""
    for value in _ticks(low, high):
        _, y = place(0, value).split(",")
        yield (
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="currentColor" opacity=".15"/>'
            f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle" style="{_TEXT}">'
            f"{_short(value, max(abs(low), abs(high)))}</text>"
        )
    for value in _ticks(0, right):
        x, _ = place(value, low).split(",")
        end = "end" if value > 0.97 * right else "middle"
        yield (
            f'<text x="{x}" y="{_HEIGHT - 10}" text-anchor="{end}" style="{_TEXT}">{_short(value, right)}'
            f"{f' {escape(progress)}' if end == 'end' else ''}</text>"
        )


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between both, three to six of them."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    rough = 10 ** math.floor(math.log10(span / 4))
    step = next(rough * factor for factor in (1, 2, 2.5, 5, 10) if span / (rough * factor) <= 5)
    first = math.ceil(low / step)
    return [at * step for at in range(first, math.floor(high / step + 1e-9) + 1)]


def _short(value: float, largest: float) -> str:
    """The value in the unit that suits the axis, of which `largest` is the largest value."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value and abs(largest) >= 5 * size:
            return f"{value / size:,.4g}{unit}"
    return f"{value:,.4g}"


def _mean(lines: Sequence[Sequence[Point]]) -> list[Point]:
    """The mean of the lines, as far as all of them reach."""
    first, last = max(line[0][0] for line in lines), min(line[-1][0] for line in lines)
    if last <= first:
        return []
    places = [first + (last - first) * at / _MEAN_POINTS for at in range(_MEAN_POINTS + 1)]
    return [(x, sum(_at(line, x) for line in lines) / len(lines)) for x in places]


def _at(line: Sequence[Point], x: float) -> float:
    """The value of the line there, between its points."""
    after = min(max(1, bisect.bisect_left(line, (x, -math.inf))), len(line) - 1)
    (x0, y0), (x1, y1) = line[after - 1], line[after]
    return y1 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)


_WIDEST = 160


class Display(Protocol):
    """Shows a run as it is now. `picture` is called only where pictures can be seen."""

    def __enter__(self) -> Display: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, line: str, picture: Callable[[], str]) -> None: ...

    def tell(self, sentence: str) -> None: ...


def open_display() -> Display:
    """The display that this process has: a notebook's if it runs in a kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return _Cell() if getattr(shell, "kernel", None) is not None else _Line()


class _Cell:
    """The output of a notebook's cell."""

    def __init__(self) -> None:
        self._library: Any = importlib.import_module("IPython.display")
        self._handle: Any = None

    def __enter__(self) -> _Cell:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, line: str, picture: Callable[[], str]) -> None:
        content = self._library.HTML(picture())
        if self._handle is None:
            self._handle = self._library.display(content, display_id=True)
        else:
            self._handle.update(content)

    def tell(self, sentence: str) -> None:
        print(sentence)


class _Line:
    """One line of a terminal, written over; into a file or a pipe, a line for each change."""

    def __init__(self) -> None:
        self._in_place = sys.stdout.isatty()
        self._shown = ""

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_place and self._shown:
            print()

    def show(self, line: str, picture: Callable[[], str]) -> None:
        line = line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
        if line == self._shown:
            return
        if self._in_place:
            print(f"\r{line:<{len(self._shown)}}", end="", flush=True)
        else:
            print(line, flush=True)
        self._shown = line

    def tell(self, sentence: str) -> None:
        print(f"\n{sentence}" if self._in_place and self._shown else sentence)
