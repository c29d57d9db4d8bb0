"""Which rows are held out for judging: a seeded share of each class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from training.engine.seeds import derive


def held_out_rows(targets: npt.NDArray[np.integer], share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return which rows are held out: of each class `share` of its rows, rounded, chosen by `seed`.

    A class with two rows or more keeps at least one row on each side; one with a single row is learned from.
    """
    held_out = np.zeros(len(targets), dtype=np.bool_)
    for value in np.unique(targets):
        rows = np.flatnonzero(targets == value)
        count = min(max(round(share * len(rows)), 1), len(rows) - 1)
        rng = np.random.Generator(np.random.PCG64(derive(seed, "held out", int(value))))
        held_out[rng.permutation(rows)[:count]] = True
    return held_out


def shuffled(count: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the numbers 0 to `count` - 1 in an order chosen by `seed`."""
    return np.random.Generator(np.random.PCG64(derive(seed, "order"))).permutation(count)
