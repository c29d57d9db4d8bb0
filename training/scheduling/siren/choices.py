"""From two real numbers to functions and their memory, and back.

The network's numbers z are of the order of 1: z = −1 and 1 are the ends of a range, in logarithms. So a step doubles or
halves, whether there are 5 functions or 500.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel

_LEAST_HALF = 1e-3
_MOST_Z = 8.0


class Choices(FrozenModel):
    """The ranges that an agent chooses from."""

    actors_min: int
    actors_max: int
    memory_min_mb: int
    memory_max_mb: int

    @property
    def _middles_and_halves(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """A range of one value has a half all the same, so that what was drawn can be distinguished from its wish."""
        low = np.log([self.actors_min, self.memory_min_mb])
        high = np.log([self.actors_max, self.memory_max_mb])
        return (low + high) / 2, np.maximum((high - low) / 2, _LEAST_HALF)

    def wishes(self, z: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return pairs of functions and MB for [..., 2] numbers of the network, beyond the ranges too."""
        middles, halves = self._middles_and_halves
        wishes: npt.NDArray[np.float64] = np.exp(middles + halves * np.clip(z, -_MOST_Z, _MOST_Z))
        return wishes

    def drawn(self, wishes: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Return the numbers that these pairs were made from."""
        middles, halves = self._middles_and_halves
        return ((np.log(wishes) - middles) / halves).astype(np.float32)

    def carried_out(
        self, wishes: npt.NDArray[np.float64], sizes_mb: Sequence[int]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return functions and sizes nearest to the wishes, of what the ranges hold and of what there is."""
        carried = self.sizes_mb(sizes_mb)
        if isinstance(carried, range):  # where there is any size, there are ten thousand
            sizes = np.arange(carried.start, carried.stop)
        else:
            sizes = np.array(carried, dtype=np.int64)
        functions = np.clip(np.rint(wishes[..., 0]), self.actors_min, self.actors_max).astype(np.int64)
        memory = np.clip(wishes[..., 1], self.memory_min_mb, self.memory_max_mb)
        place = np.searchsorted(sizes, memory).clip(0, len(sizes) - 1)
        below, above = sizes[(place - 1).clip(0)], sizes[place]
        return functions, np.where(memory - below <= above - memory, below, above)

    def sizes_mb(self, there_are: Sequence[int]) -> Sequence[int]:
        """Return the sizes of its range, of those there are, smallest first; if there is none, the nearest to its
        middle.
        """
        first = bisect_left(there_are, self.memory_min_mb)
        within = there_are[first : bisect_right(there_are, self.memory_max_mb)]
        middle = math.sqrt(self.memory_min_mb * self.memory_max_mb)
        return within or [min(there_are, key=lambda size: abs(size - middle))]
