"""Learning curves as SVG, written by hand: one panel an environment, one colour and dash an arm.

Thick: IQM over seeds of the evaluations; band: its bootstrap 95 % interval (from 3 seeds on); thin: single seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from research.reports.outcomes import Summary
from training.statistics.few_seeds import bootstrap, interquartile_mean
from webapp.formatting import axis_of, nice_ticks

# Okabe & Ito: colours that any colour vision distinguishes; dashes distinguish lines without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 3", "12 4")
_WIDTH, _HEIGHT = 420, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 34, 42
BAND_SEEDS, BAND_REPETITIONS = 3, 1_000


def learning_curves(title: str, summaries: Sequence[Summary], titles: dict[str, str]) -> str | None:
    """The figure, or None while no run is complete. `titles` names arms, in the order of their colours."""
    environments = list(dict.fromkeys(summary.environment for summary in summaries))
    panels = []
    for environment in environments:
        drawn = [
            one for one in summaries if one.environment == environment and one.common_curve() is not None
        ]
        if drawn:
            panels.append((environment, drawn))
    if not panels:
        return None
    columns = min(2, len(panels))
    legend_y = math.ceil(len(panels) / columns) * _HEIGHT
    shown = [arm for arm in titles if any(summary.arm == arm for _, drawn in panels for summary in drawn)]
    width, height = columns * _WIDTH, legend_y + 22 * len(shown) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    order = list(titles)
    for position, (environment, drawn) in enumerate(panels):
        x, y = position % columns * _WIDTH, position // columns * _HEIGHT
        parts.append(f'<g transform="translate({x} {y})">{_panel(environment, drawn, order)}</g>')
    for row, arm in enumerate(shown):
        y = legend_y + 16 + 22 * row
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + 34}" y1="{y}" y2="{y}" {_stroke(order.index(arm))}/>')
        parts.append(f'<text x="{_LEFT + 42}" y="{y + 4}" fill="#222222">{escape(titles[arm])}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(environment: str, drawn: Sequence[Summary], order: list[str]) -> str:
    curves = [(summary, curve) for summary in drawn if (curve := summary.common_curve()) is not None]
    x_end = max(grid[-1] for _, (grid, _) in curves)
    values = [value for _, (_, seeds) in curves for line in seeds for value in line]
    ticks = nice_ticks(min(0.0, *values), max(values))
    across = axis_of(0.0, x_end, _LEFT, _WIDTH - _RIGHT)
    up = axis_of(ticks[0], ticks[-1], _HEIGHT - _BOTTOM, _TOP)

    def path(xs: Sequence[float], ys: Sequence[float]) -> str:
        return "M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in zip(xs, ys, strict=True))

    parts = [f'<text x="{_LEFT}" y="20" font-weight="600" fill="#222222">{escape(environment)}</text>']
    for tick in ticks:
        y = up(tick)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e3e3"/>'
        )
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">{tick:,.0f}</text>'
        )
    for tick in nice_ticks(0.0, x_end):
        if tick <= x_end:
            parts.append(
                f'<text x="{across(tick):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle" fill="#555555">'
                f"{_steps(tick)}</text>"
            )
    parts.append(
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle" fill="#555555">'
        "environment steps · evaluated return</text>"
    )
    for summary, (grid, seeds) in curves:
        place = order.index(summary.arm)
        colour = COLOURS[place % len(COLOURS)]
        matrix = np.asarray(seeds)
        if len(seeds) >= BAND_SEEDS:
            bands = [bootstrap(column, repetitions=BAND_REPETITIONS) for column in matrix.T]
            outline = path(
                [*grid, *reversed(grid)], [*(b.low for b in bands), *(b.high for b in reversed(bands))]
            )
            parts.append(f'<path d="{outline}Z" fill="{colour}" fill-opacity="0.15" stroke="none"/>')
        for line in seeds if len(seeds) > 1 else []:
            parts.append(
                f'<path d="{path(grid, line)}" fill="none" stroke="{colour}" stroke-opacity="0.35"/>'
            )
        middle = [interquartile_mean(column) for column in matrix.T]
        parts.append(f'<path d="{path(grid, middle)}" fill="none" {_stroke(place)}/>')
    return "".join(parts)


def _stroke(place: int) -> str:
    dash = _DASHES[place % len(_DASHES)]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{COLOURS[place % len(COLOURS)]}" stroke-width="2.2"{dashes}'


def _steps(count: float) -> str:
    if count >= 1_000_000:
        return f"{count / 1_000_000:g}M"
    return f"{count / 1000:g}k" if count >= 1000 else f"{count:g}"
