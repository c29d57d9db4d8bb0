"""Return against dollars as SVG, drawn by the server: the picture is static and needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.comparing.figures import SideFigures, ahead_of_each
from webapp.formatting import axis_of, display_usd, format_duration, format_score, nice_ticks, svg_points
from webapp.money.amounts import PICODOLLARS_PER_USD

WIDTH, HEIGHT = 440, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 28, 20, 32


@dataclass(frozen=True)
class ParetoDot:
    """A side in the plane. `low` and `high` end its interval of return; `words` says it all."""

    figures: SideFigures
    x: float
    y: float
    low: float
    high: float
    words: str


@dataclass(frozen=True)
class Plane:
    dots: tuple[ParetoDot, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    front: str
    """Points of an SVG line through the sides that are significantly ahead of each other side in return or across;
    empty for fewer than two."""
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM
    width: int = WIDTH
    height: int = HEIGHT


def plane(sides: Sequence[SideFigures], by: str = "usd") -> Plane | None:
    """The sides that have a return, over dollars a run (or seconds a run, `by` "time"); None for fewer than two."""
    known = [figures for figures in sides if figures.iqm is not None and _across(figures, by) is not None]
    if len(known) < 2:
        return None
    across = [_across(figures, by) or 0.0 for figures in known]
    if max(across) <= 0:
        return None
    unit = _time_unit(max(across))[0] if by == "time" else 1.0
    x_steps = [unit * step for step in nice_ticks(0.0, max(across) / unit * 1.05, 4)]
    bounds = [bound for figures in known if figures.iqm for bound in (figures.iqm.low, figures.iqm.high)]
    y_steps = nice_ticks(min(bounds), max(bounds), 4)
    horizontal = axis_of(x_steps[0], x_steps[-1], _LEFT, WIDTH - _RIGHT)
    vertical = axis_of(y_steps[0], y_steps[-1], HEIGHT - _BOTTOM, _TOP)
    dots = tuple(
        ParetoDot(
            figures,
            horizontal(at),
            vertical(figures.iqm.value),
            vertical(figures.iqm.low),
            vertical(figures.iqm.high),
            _words(figures),
        )
        for figures, at in zip(known, across, strict=True)
        if figures.iqm
    )
    return Plane(
        dots,
        tuple((horizontal(value), _axis(value, by, max(across))) for value in x_steps),
        tuple((vertical(value), format_axis_score(value, known[0].side.score.decimals)) for value in y_steps),
        _front(dots, by),
    )


def _front(dots: Sequence[ParetoDot], by: str) -> str:
    ahead = {figures.side.place for figures in ahead_of_each([dot.figures for dot in dots], (by,))}
    joined = sorted((dot.x, dot.y) for dot in dots if dot.figures.side.place in ahead)
    return svg_points(joined) if len(joined) > 1 else ""


def _across(figures: SideFigures, by: str) -> float | None:
    if by == "time":
        return figures.time_s
    return None if figures.cost_a_run is None else figures.cost_a_run / PICODOLLARS_PER_USD


def format_axis_score(value: float, decimals: int) -> str:
    """A score at a tick, without a fraction of zeros."""
    return format_score(value, decimals).removesuffix(f".{'0' * decimals}")


def _axis(value: float, by: str, longest: float) -> str:
    if by == "usd":
        return f"${value:.3g}"
    size, unit = _time_unit(longest)
    return f"{value / size:.3g} {unit}"


def _time_unit(longest_s: float) -> tuple[float, str]:
    """Seconds, minutes or hours: the unit in which people would give this time, so that ticks are round."""
    return (1.0, "s") if longest_s < 120 else (60.0, "min") if longest_s < 7200 else (3600.0, "h")


def _words(figures: SideFigures) -> str:
    score = figures.side.score
    value = format_score(figures.iqm.value, score.decimals) if figures.iqm else ""
    cost = "unknown cost" if figures.cost_a_run is None else display_usd(figures.cost_a_run)
    time = "unknown time" if figures.time_s is None else format_duration(figures.time_s)
    return f"{figures.side.name}: {score.name} {value}, {cost} and {time} a run"
