"""Cross-entropy over the outputs of a model.

Two classes have one output, the log odds of the second class; more classes have one output each (softmax).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


def outputs_of(classes: int) -> int:
    """Return how many outputs a model has for so many classes."""
    return 1 if classes == 2 else classes


def probabilities_of(outputs: Floats) -> Floats:
    """Return each class's probability, as [row, class]."""
    if outputs.shape[1] == 1:
        second = _sigmoid(outputs[:, 0])
        return np.stack([_sigmoid(-outputs[:, 0]), second], axis=1)
    shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    shares: Floats = shifted / shifted.sum(axis=1, keepdims=True)
    return shares


def cross_entropy(outputs: Floats, targets: npt.NDArray[np.int32]) -> tuple[float, Floats]:
    """Return the mean loss over the rows, and its gradient by the outputs."""
    rows = len(outputs)
    if outputs.shape[1] == 1:
        odds = outputs[:, 0]
        signed = np.where(targets == 1, -odds, odds)
        loss = float(np.logaddexp(0.0, signed).mean(dtype=np.float64))
        slopes = (_sigmoid(odds) - targets).astype(outputs.dtype) / rows
        return loss, slopes[:, None]
    slopes = probabilities_of(outputs)
    top = outputs.max(axis=1)
    logs = np.log(np.exp(outputs - top[:, None]).sum(axis=1)) + top
    own = np.arange(rows), targets
    loss = float((logs - outputs[own]).mean(dtype=np.float64))
    slopes[own] -= 1.0
    slopes /= rows
    return loss, slopes


def _sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + e^-x) without overflow."""
    small = np.exp(-np.abs(x))
    result: Floats = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return result
