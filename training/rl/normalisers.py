"""Running mean and variance, merged from batches; frozen copies travel with each version of the policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Mean and variance of all samples so far. Merging is exact for any batches (Chan et al. 1979)."""

    mean: Doubles
    variance: Doubles
    count: float

    @staticmethod
    def empty(size: int) -> Moments:
        return Moments(np.zeros(size), np.ones(size), 0.0)

    @staticmethod
    def of(samples: npt.NDArray[np.floating]) -> Moments:
        """Return the moments of `samples` ([n, size]) alone. There must be one at least."""
        values = samples.astype(np.float64, copy=False)
        return Moments(values.mean(axis=0), values.var(axis=0), float(len(samples)))

    def merge(self, samples: npt.NDArray[np.floating]) -> Moments:
        """Return these moments merged with those of `samples` ([n, size])."""
        return self.join(Moments.of(samples)) if len(samples) else self

    def join(self, other: Moments) -> Moments:
        """Return the moments of both sets of samples together."""
        count = other.count
        total = self.count + count
        shift = other.mean - self.mean
        square_sum = (
            self.variance * self.count + other.variance * count + shift**2 * (self.count * count / total)
        )
        return Moments(self.mean + shift * (count / total), square_sum / total, total)

    def scale(self) -> Doubles:
        """Return the factor that gives unit variance."""
        return 1.0 / np.sqrt(self.variance + 1e-8)
