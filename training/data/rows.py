"""Rows of a data set in memory: features, dense or sparse, and a class for each row.

Dense features are numbers of 4 bytes, or bytes that stand for 0 to 1 in steps of 1/255. Sparse features are compressed
rows (CSR): row i has the places `places[offsets[i]:offsets[i + 1]]` and the values beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]  # float32, or float64 where a test wants it

_BYTE_STEP = 1.0 / 255.0


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """`values` is [row, column]: float32, or uint8 for pictures."""

    values: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    @property
    def nonzeros(self) -> int:
        """How many numbers are stored."""
        return int(self.values.size)

    def numbers(self, dtype: npt.DTypeLike = np.float32) -> Floats:
        """Return the values as real numbers of `dtype`."""
        numbers: Floats = self.values.astype(dtype, copy=False)
        return numbers * np.asarray(_BYTE_STEP, dtype) if self.values.dtype == np.uint8 else numbers

    def between(self, begin: int, end: int) -> DenseFeatures:
        return DenseFeatures(self.values[begin:end])

    def take(self, order: npt.NDArray[np.intp]) -> DenseFeatures:
        return DenseFeatures(self.values[order])


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """`offsets` is int64 [row + 1] and begins with 0, `places` int32, `values` float32. `width` counts all places."""

    offsets: npt.NDArray[np.int64]
    places: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    width: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nonzeros(self) -> int:
        return len(self.places)

    def between(self, begin: int, end: int) -> SparseFeatures:
        offsets = self.offsets[begin : end + 1]
        low, high = int(offsets[0]), int(offsets[-1])
        return SparseFeatures(offsets - low, self.places[low:high], self.values[low:high], self.width)

    def take(self, order: npt.NDArray[np.intp]) -> SparseFeatures:
        lengths = np.diff(self.offsets)[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        picked = np.repeat(self.offsets[order] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return SparseFeatures(offsets, self.places[picked], self.values[picked], self.width)

    def times(self, weight: Floats) -> Floats:
        """Return the product with `weight` [width, outputs], as [row, outputs] of its dtype."""
        rows = self._row_of_each()
        products = weight[self.places] * self.values[:, None]
        sums = [np.bincount(rows, products[:, k], len(self)) for k in range(weight.shape[1])]
        return np.stack(sums, axis=1).astype(weight.dtype)

    def transposed_times(self, slopes: Floats) -> Floats:
        """Return the transposed features times `slopes` [row, outputs], as [width, outputs] of its dtype."""
        products = slopes[self._row_of_each()] * self.values[:, None]
        sums = [np.bincount(self.places, products[:, k], self.width) for k in range(slopes.shape[1])]
        return np.stack(sums, axis=1).astype(slopes.dtype)

    def _row_of_each(self) -> npt.NDArray[np.intp]:
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


Features = DenseFeatures | SparseFeatures


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, and the number of each row's class (int32)."""

    features: Features
    targets: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.targets)

    def between(self, begin: int, end: int) -> Rows:
        """Return the rows from `begin` up to `end`, as views where possible."""
        return Rows(self.features.between(begin, end), self.targets[begin:end])

    def take(self, order: npt.NDArray[np.intp]) -> Rows:
        """Return copies of the rows with these numbers, in their order."""
        return Rows(self.features.take(order), self.targets[order])


def joined(parts: list[Rows]) -> Rows:
    """Return the rows of all parts in order. They must be of one kind and width; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    targets = np.concatenate([part.targets for part in parts])
    dense = [part.features for part in parts if isinstance(part.features, DenseFeatures)]
    if dense:
        return Rows(DenseFeatures(np.concatenate([part.values for part in dense])), targets)
    sparse = [part.features for part in parts if isinstance(part.features, SparseFeatures)]
    starts = np.cumsum([0, *(part.nonzeros for part in sparse)])
    offsets = [part.offsets[1:] + start for part, start in zip(sparse, starts, strict=False)]
    return Rows(
        SparseFeatures(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            np.concatenate([part.places for part in sparse]),
            np.concatenate([part.values for part in sparse]),
            sparse[0].width,
        ),
        targets,
    )
