"""The largest and smallest eigenvalues of a symmetric operator, from products with vectors alone (Lanczos 1950).

After m products the operator is known on the Krylov space of the start vector, as a small tridiagonal matrix T. The
outermost eigenvalues of T, the Ritz values, approach those of the operator from inside, outliers first. In exact
arithmetic the basis stays orthogonal by itself. In floating point it does not, and eigenvalues appear a second time
as ghosts. So each new vector is made orthogonal to all earlier ones, twice; for a few dozen this costs next to
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Product = Callable[[Vector], npt.NDArray[Any]]
_EXHAUSTED = 1e-10
_SURE = 5


class SpectrumEnds(NamedTuple):
    """The largest and the smallest eigenvalue, with unit vectors, and how far off they can still be.

    `error` bounds the distance of each to a true eigenvalue, relative to its own magnitude: the larger of the two
    bounds. If a product was not finite, the eigenvalues and the error are NaN.
    """

    largest: float
    smallest: float
    largest_vector: Vector
    smallest_vector: Vector
    error: float
    products: int


class _Estimate(NamedTuple):
    """The estimate after some products: Ritz values in rising order, their vectors in the Krylov basis, and `beside`,
    the length of the last product's part outside the basis.
    """

    values: Vector
    vectors: Vector
    basis: Vector
    beside: float

    @property
    def products(self) -> int:
        return len(self.values)

    def vector(self, i: int) -> Vector:
        """Return the Ritz vector of value `i`, in the operator's space."""
        along: Vector = self.basis.T @ self.vectors[:, i]
        return along


def spectrum_ends(
    product: Product, size: int, *, seed: int, most_products: int, tolerance: float
) -> SpectrumEnds:
    """Return both ends. Stops once they have been known to `tolerance` for some products, or after `most_products`. It
    is deterministic.
    """
    held = 0
    for known in _iterations(product, size, seed, most_products):
        # The residual of a Ritz pair, ‖A y − θ y‖ = β |last entry|, bounds its distance to an eigenvalue. R is a ratio
        # of the two ends, so each has to be known by its own magnitude, however small it is beside the other.
        residuals = known.beside * np.abs(known.vectors[-1, [0, -1]])
        magnitudes = np.abs(known.values[[0, -1]])
        with np.errstate(divide="ignore", invalid="ignore"):
            error = float(np.where(residuals == 0.0, 0.0, residuals / magnitudes).max())
        # A residual bounds the distance to an eigenvalue, not to the outermost: one that the start vector hardly
        # contains appears some products later, beyond an end that seemed known.
        held = held + 1 if error <= tolerance else 0
        if held > _SURE:
            break
    largest, smallest = float(known.values[-1]), float(known.values[0])
    return SpectrumEnds(largest, smallest, known.vector(-1), known.vector(0), error, known.products)


def leading_vectors(
    product: Product, size: int, count: int, *, seed: int, products: int
) -> list[tuple[float, Vector]]:
    """Return the eigenvalues of largest magnitude with their unit vectors, the largest first. There are fewer than
    `count` if the operator has fewer distinct ones, and NaN if a product was not finite.
    """
    *_, known = _iterations(product, size, seed, products)
    order = np.argsort(-np.abs(known.values), kind="stable")[:count]
    return [(float(known.values[i]), known.vector(int(i))) for i in order]


def _iterations(product: Product, size: int, seed: int, most_products: int) -> Iterator[_Estimate]:
    """Yield the estimate after each product, until the Krylov space is complete."""
    rng = np.random.Generator(np.random.PCG64(seed))
    most = min(most_products, size)
    basis = np.empty((most, size))
    start = rng.standard_normal(size)
    basis[0] = start / np.linalg.norm(start)
    diagonal, beside = np.zeros(most), np.zeros(most)
    for i in range(most):
        along = np.asarray(product(basis[i]), dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            diagonal[i] = along @ basis[i]
            for _ in range(2):
                along -= basis[: i + 1].T @ (basis[: i + 1] @ along)
            beside[i] = length = float(np.linalg.norm(along))
        if not (np.isfinite(diagonal[i]) and np.isfinite(length)):
            yield _Estimate(np.full(i + 1, np.nan), np.eye(i + 1), basis[: i + 1], np.nan)
            return
        tridiagonal = np.diag(diagonal[: i + 1]) + np.diag(beside[:i], 1) + np.diag(beside[:i], -1)
        values, vectors = np.linalg.eigh(tridiagonal)
        yield _Estimate(values, vectors, basis[: i + 1], length)
        if i + 1 == most or length <= _EXHAUSTED * max(1.0, float(np.abs(values).max())):
            return
        basis[i + 1] = along / length
