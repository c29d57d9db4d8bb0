"""A small line without axes, drawn by the server: it shows in a row of a list whether a job learns."""

from __future__ import annotations

from collections.abc import Sequence

from webapp.formatting import svg_points

WIDTH, HEIGHT = 96, 24
POINTS = 32


def sampled(last: int) -> list[int]:
    """Numbers of rounds from the first to the last, as many as a small line has room for."""
    if last <= POINTS:
        return list(range(1, last + 1))
    return sorted({1 + round(at * (last - 1) / (POINTS - 1)) for at in range(POINTS)})


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """The points of an SVG polyline that fills the box; empty for fewer than two."""
    if len(points) < 2:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, bottom = min(xs), min(ys)
    wide, high = max(xs) - left or 1, max(ys) - bottom or 1
    inner = HEIGHT - 4
    return svg_points(
        (WIDTH * (x - left) / wide, HEIGHT - 2 - inner * (y - bottom) / high) for x, y in points
    )
