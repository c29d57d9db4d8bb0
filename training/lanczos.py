"""Both ends of a symmetric operator's spectrum, from products with vectors alone (Lanczos 1950).

After m products the operator is known on the Krylov space of the start vector, as a small tridiagonal matrix T. The
outermost eigenvalues of T, the Ritz values, approach those of the operator from inside, outliers first. In exact
arithmetic the basis stays orthogonal by itself; in numbers of a computer it does not, and eigenvalues come back as
ghosts. So each new vector is made orthogonal to all earlier ones, twice, which for a few dozen costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
_EXHAUSTED = 1e-10


class Ends(NamedTuple):
    """The largest and the smallest eigenvalue, with unit vectors, and how far off they can still be.

    `error` bounds the distance of the two to true eigenvalues, as a part of the larger magnitude.
    """

    largest: float
    smallest: float
    largest_vector: Vector
    smallest_vector: Vector
    error: float
    products: int


def spectrum_ends(
    product: Callable[[Vector], npt.NDArray[Any]],
    size: int,
    *,
    seed: int,
    most_products: int,
    tolerance: float,
) -> Ends:
    """Stops once both ends are known to `tolerance`, or after `most_products`. Equal arguments, equal answers."""
    rng = np.random.Generator(np.random.PCG64(seed))
    most = min(most_products, size)
    basis = np.empty((most + 1, size))
    start = rng.standard_normal(size)
    basis[0] = start / np.linalg.norm(start)
    diagonal, beside = np.zeros(most), np.zeros(most)
    done = 0
    while True:
        along = np.asarray(product(basis[done]), dtype=np.float64)
        diagonal[done] = along @ basis[done]
        for _ in range(2):
            along -= basis[: done + 1].T @ (basis[: done + 1] @ along)
        beside[done] = length = float(np.linalg.norm(along))
        done += 1
        values, vectors = _ritz(diagonal[:done], beside[: done - 1])
        magnitude = max(abs(values[0]), abs(values[-1]))
        # The residual of a Ritz pair, ‖A y − θ y‖ = β |last entry|, bounds its distance to an eigenvalue.
        errors = length * np.abs(vectors[-1, [0, -1]])
        error = float(errors.max() / magnitude) if magnitude > 0 else 0.0
        nothing_left = length <= _EXHAUSTED * max(1.0, magnitude)
        if nothing_left or done == most or (done > 2 and error <= tolerance):
            ends = basis[:done].T @ vectors[:, [0, -1]]
            return Ends(float(values[-1]), float(values[0]), ends[:, 1], ends[:, 0], error, done)
        basis[done] = along / length


def _ritz(diagonal: Vector, beside: Vector) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Eigenvalues in rising order, and eigenvectors as columns, of the tridiagonal matrix."""
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return values, vectors
