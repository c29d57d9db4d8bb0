"""From repeated measurements to a number with a range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloud.timing.numbers.quantity import Kind, Quantity

# No figure is more certain than this: another hour on the same machine differs by as much.
_LEAST_SPREAD = 0.05


def quantity(
    values: Sequence[float], source: str, *, low: float | None = None, high: float | None = None
) -> Quantity:
    """Return the median, with the range from the 10th to the 90th percentile, and at least five percent either way.

    `low` and `high` widen the range where something other than chance bounds it.
    """
    value = float(np.median(values))
    lows = [float(np.percentile(values, 10)), value * (1.0 - _LEAST_SPREAD)]
    highs = [float(np.percentile(values, 90)), value * (1.0 + _LEAST_SPREAD)]
    lows += [] if low is None else [low]
    highs += [] if high is None else [high]
    return of(value, min(lows), max(highs), source, "measured")


def of(value: float, low: float, high: float, source: str, kind: Kind) -> Quantity:
    """Return a number and its range, rounded to four digits, because measurements are no more precise."""
    rounded = _four_digits(value)
    return Quantity(
        value=rounded,
        low=min(rounded, max(0.0, _four_digits(low))),
        high=max(rounded, _four_digits(high)),
        source=source,
        kind=kind,
    )


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def fit(rows: Sequence[Sequence[float]], times: Sequence[float]) -> list[float]:
    """Return factors f ≥ 0 with rows · f ≈ times, by least squares of relative errors.

    A factor that would be negative is held at 0 and the others are fitted again.
    """
    matrix = np.asarray(rows, dtype=np.float64)
    wanted = np.asarray(times, dtype=np.float64)
    weights = 1.0 / np.maximum(np.abs(wanted), 1e-12)
    left = list(range(matrix.shape[1]))
    while left:
        solution = np.linalg.lstsq(matrix[:, left] * weights[:, None], wanted * weights, rcond=None)[0]
        if (solution >= 0.0).all():
            factors = dict(zip(left, solution.tolist(), strict=True))
            return [factors.get(column, 0.0) for column in range(matrix.shape[1])]
        left.pop(int(np.argmin(solution)))
    return [0.0] * matrix.shape[1]
