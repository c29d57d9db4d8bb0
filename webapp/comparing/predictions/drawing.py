"""A prediction as two small charts: the score and the spending so far, and the band of where they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.statistics.curve_forecast import smoothed
from webapp.comparing.predictions.predict import WhatIf
from webapp.comparing.predictions.text import display_dollars
from webapp.formatting import (
    MINUS,
    axis_of,
    format_axis_usd,
    format_count,
    format_duration,
    format_score,
    nice_ticks,
    svg_points,
)
from webapp.jobs.models import Job
from webapp.money.amounts import PICODOLLARS_PER_USD

WIDTH, HEIGHT = 480, 180
_EDGE = 6


@dataclass(frozen=True)
class PredictionChart:
    """`past` is the line so far; `fan` the band from its end to the predicted end, `middle` the line in it.

    `limit` is where a line across is drawn, if any. `ticks` are heights with their figures; `first` and `last` the ends
    of the horizontal axis.
    """

    title: str
    past: str
    fan: str
    middle: str
    limit: float | None
    limit_words: str
    ticks: tuple[tuple[float, str], ...]
    first: str
    last: str
    sentence: str


def charts(job: Job, what_if: WhatIf) -> list[PredictionChart]:
    """Return the chart of the score, if it is predicted, and that of the spending."""
    drawn = []
    score = job.training_facts.score
    if what_if.score is not None:
        scored = [point for point in what_if.points if point.score is not None]
        line = smoothed([point.score or 0.0 for point in scored])
        band = sorted((what_if.score.p10, what_if.score.p90))
        words = [format_score(end, score.decimals) for end in band]
        drawn.append(
            _chart(
                f"Training {score.name}",
                [(point.steps, float(value)) for point, value in zip(scored, line, strict=True)],
                (what_if.end.steps.p50, band[0], what_if.score.p50, band[1]),
                words=_tick,
                first=format_count(round(scored[0].steps)),
                last=f"{format_count(round(what_if.end.steps.p50))} {job.training_facts.progress_unit}",
                sentence=f"Training {score.name} at the end: {words[0]} to {words[1]}.",
            )
        )
    usd = what_if.end.usd
    limit = what_if.limit_picodollars / PICODOLLARS_PER_USD
    drawn.append(
        _chart(
            "Spent",
            [(0.0, 0.0), *((point.at_s, point.usd) for point in what_if.points)],
            (what_if.end.time_s.p50, usd.p10, usd.p50, usd.p90),
            words=lambda value: format_axis_usd(round(value * PICODOLLARS_PER_USD)),
            first="0 s",
            last=format_duration(what_if.end.time_s.p50),
            sentence=f"Cost at the end: {display_dollars(usd.p10)} to {display_dollars(usd.p90)}.",
            limit=limit,
        )
    )
    return drawn


def _tick(value: float) -> str:
    return f"{value:,.10g}".replace("-", MINUS)


def _chart(
    title: str,
    past: Sequence[tuple[float, float]],
    end: tuple[float, float, float, float],
    *,
    words: Callable[[float], str],
    first: str,
    last: str,
    sentence: str,
    limit: float | None = None,
) -> PredictionChart:
    """`end`: where the chart ends, and the band's low, middle and high there."""
    until, low, middle, high = end
    left = past[0][0]
    values = [*(value for _, value in past), low, high, *([] if limit is None else [limit])]
    heights = nice_ticks(min(values), max(values))
    across = axis_of(left, until if until > left else left + 1.0, _EDGE, WIDTH - _EDGE)
    up = axis_of(heights[0], heights[-1], HEIGHT - _EDGE, _EDGE)

    def at(x: float, y: float) -> tuple[float, float]:
        return across(x), up(y)

    now = past[-1]
    return PredictionChart(
        title=title,
        past=svg_points(at(*point) for point in past),
        fan=svg_points([at(*now), at(until, high), at(until, low)]),
        middle=svg_points([at(*now), at(until, middle)]),
        limit=None if limit is None else up(limit),
        limit_words="" if limit is None else f"Limit {display_dollars(limit)}",
        ticks=tuple((up(height), words(height)) for height in heights),
        first=first,
        last=last,
        sentence=sentence,
    )
