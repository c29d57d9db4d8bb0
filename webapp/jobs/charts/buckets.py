"""Many rounds as few points, without hiding a spike: each point has the last value, the minimum and the
maximum.

A point stands for 1, 2, 4, 8, ... rounds, aligned to multiples of that number. So a growing run only ever
merges two neighbouring points, and a page can do the same (static/js/charts/columns.js).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from webapp.jobs.charts.figures import AXES, LINES, PARTS, WALL, significant

MOST_POINTS = 400
Numbers = npt.NDArray[np.float64]


class Bucketed(NamedTuple):
    """Points of `per_point` rounds each. `low` and `high` are empty if a point is one round."""

    per_point: int
    columns: dict[str, list[float | None]]
    low: dict[str, list[float | None]]
    high: dict[str, list[float | None]]


def make_buckets(
    columns: Mapping[str, Sequence[float]], first: int, last: int, most: int = MOST_POINTS
) -> Bucketed:
    """Return rounds `first` to `last` as at most about `most` points."""
    rounds = np.asarray(columns["round"], dtype=np.float64)
    chosen = slice(int(np.searchsorted(rounds, first)), int(np.searchsorted(rounds, last, side="right")))
    rounds = rounds[chosen]
    if not len(rounds):
        return Bucketed(1, {}, {}, {})
    per_point = 1
    while len(rounds) / per_point > most:
        per_point *= 2
    starts = _starts(rounds, per_point)
    ends = np.append(starts[1:], len(rounds)) - 1
    values = {name: np.asarray(column, dtype=np.float64)[chosen] for name, column in columns.items()}
    points = {name: values[name][ends] for name in (*AXES, WALL)}
    low: dict[str, Numbers] = {}
    high: dict[str, Numbers] = {}
    with np.errstate(invalid="ignore"):
        for name in LINES:
            points[name] = _last_known(values[name], starts)
            if per_point > 1:
                low[name] = np.fmin.reduceat(values[name], starts)
                high[name] = np.fmax.reduceat(values[name], starts)
        for name in PARTS:
            points[name] = _means(values[name], starts)
    return Bucketed(per_point, _listed(points), _listed(low), _listed(high))


def _starts(rounds: Numbers, per_point: int) -> npt.NDArray[np.intp]:
    """Return where each point begins: rounds 1 to n, n + 1 to 2n, ... share a point."""
    ids = np.floor((rounds - 1) / per_point)
    return np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))


def _last_known(values: Numbers, starts: npt.NDArray[np.intp]) -> Numbers:
    where = np.where(np.isnan(values), -1, np.arange(len(values)))
    last = np.maximum.reduceat(where, starts)
    return np.where(last < 0, np.nan, values[np.maximum(last, 0)])


def _means(values: Numbers, starts: npt.NDArray[np.intp]) -> Numbers:
    known = ~np.isnan(values)
    counts = np.add.reduceat(known, starts)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _digits(name: str) -> int:
    """Horizontal positions need more digits than heights: a screen shows only some hundreds of heights."""
    return 6 if name in AXES or name == WALL else 4


def _listed(columns: Mapping[str, Numbers]) -> dict[str, Any]:
    """Return the column as a JSON list; None if it has no value."""
    return {
        name: [None if value != value else significant(value, _digits(name)) for value in column.tolist()]
        for name, column in columns.items()
        if name in AXES or name == WALL or not np.isnan(column).all()
    }
