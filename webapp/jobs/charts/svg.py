"""Helpers of server-side drawings: points of a line, and round values for an axis."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, log10


def svg_points(places: Iterable[tuple[float, float]]) -> str:
    """Return the `points` attribute of a polyline or polygon."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def round_steps(low: float, high: float) -> list[float]:
    """Return four to seven round values that span low to high."""
    if high <= low:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    raw = (high - low) / 4
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    return [step * at for at in range(floor(low / step + 1e-9), ceil(high / step - 1e-9) + 1)]
