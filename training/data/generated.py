"""Data sets that are drawn from a model that is known: dense or sparse, separable or noisy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from training.data.dataset import Table
from training.data.manifest import Column
from training.data.rows import DenseFeatures, SparseFeatures
from training.engine.seeds import derive

_MARGIN = 0.1

CLICKS_BITS = 16


def dense_table(rows: int, width: int, *, classes: int = 2, noise: float = 1.0, seed: int = 0) -> Table:
    """Return rows of standard normal numbers whose class a linear model gives.

    `noise` 0: the class with the largest output, and rows near the boundary are drawn again, so that planes separate
    the classes. Above 0: the class is drawn, with outputs divided by `noise`.
    """
    rng = np.random.Generator(np.random.PCG64(derive(seed, "dense", width, classes)))
    weight = rng.standard_normal((width, classes)) * (2.0 / np.sqrt(width))
    numbers = rng.standard_normal((rows, width))
    if not noise:
        near = np.arange(rows)
        while len(near):
            near = near[_margin(numbers[near] @ weight) < _MARGIN]
            numbers[near] = rng.standard_normal((len(near), width))
    targets = _drawn(rng, numbers.astype(np.float32) @ weight, noise)
    return Table(
        name="Generated",
        source=f"{rows:,} rows of {width} numbers and {classes} classes, {_noise_in_words(noise)}; seed {seed}",
        features=DenseFeatures(numbers.astype(np.float32)),
        targets=targets,
        target="class",
        classes=tuple(str(number) for number in range(classes)),
        columns=tuple(Column(name=f"x{number + 1}") for number in range(width)),
    )


def sparse_table(
    rows: int, texts: int, *, bits: int = CLICKS_BITS, values: int = 200, noise: float = 1.0, seed: int = 0
) -> Table:
    """Return rows with one place for each of so many columns, as hashed texts give them, and two classes.

    Each column has so many `values`, of which few are frequent (Zipf). A logistic model with a weight a place gives
    the class, as in `dense_table`; without noise none is near the boundary.
    """
    rng = np.random.Generator(np.random.PCG64(derive(seed, "sparse", texts, bits)))
    width = 1 << bits
    chances = 1.0 / np.arange(1, values + 1)
    chances /= chances.sum()
    of_value = rng.integers(0, width, (texts, values))
    weight = rng.standard_normal(width) * (2.0 / np.sqrt(texts))
    columns = np.arange(texts)

    def draw(count: int) -> npt.NDArray[np.int64]:
        return of_value[columns, rng.choice(values, (count, texts), p=chances)]

    def log_odds(drawn: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        odds: npt.NDArray[np.float64] = weight[drawn].sum(axis=1) - 1.0  # fewer clicks than not
        return odds

    places = draw(rows)
    near = np.arange(0 if noise else rows)
    while not noise and len(near):
        near = near[np.abs(log_odds(places[near])) < _MARGIN]
        places[near] = draw(len(near))
    odds = log_odds(places)
    return Table(
        name="Generated clicks",
        source=f"{rows:,} rows of {texts} texts in 2^{bits} places, {_noise_in_words(noise)}; seed {seed}",
        features=SparseFeatures(
            np.arange(rows + 1, dtype=np.int64) * texts,
            places.reshape(-1).astype(np.int32),
            np.ones(rows * texts, dtype=np.float32),
            width,
        ),
        targets=_drawn(rng, np.stack([np.zeros(rows), odds], axis=1), noise),
        target="clicked",
        classes=("no", "yes"),
    )


def _margin(outputs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how far the largest output of each row is above the next."""
    ordered = np.sort(outputs, axis=1)
    margin: npt.NDArray[np.float64] = ordered[:, -1] - ordered[:, -2]
    return margin


def _drawn(rng: np.random.Generator, outputs: npt.NDArray[np.float64], noise: float) -> npt.NDArray[np.int32]:
    """Return a class for each row: the largest of its outputs, with Gumbel noise added. So the class is drawn with
    softmax probabilities of outputs / noise.
    """
    noisy = outputs + noise * rng.gumbel(size=outputs.shape) if noise else outputs
    classes: npt.NDArray[np.int32] = np.argmax(noisy, axis=1).astype(np.int32)
    return classes


def _noise_in_words(noise: float) -> str:
    return f"noise {noise:g}" if noise else "separable"
