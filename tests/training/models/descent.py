"""Steps of minibatch gradient descent, in the order of the rows that are given."""

from __future__ import annotations

import math
from typing import NamedTuple

from training.data.rows import Rows
from training.supervised.models.model import Model, Parameters
from training.supervised.models.optimisers import Optimiser, OptimiserState


class BadLoss(ValueError):
    """A loss is not a finite number: the step size is too large, or the data is."""


class Descended(NamedTuple):
    """The parameters and the optimiser's state after some steps, and the mean of their losses."""

    parameters: Parameters
    state: OptimiserState
    loss: float


def descend(
    model: Model,
    optimiser: Optimiser,
    parameters: Parameters,
    state: OptimiserState,
    rows: Rows,
    *,
    minibatch: int,
) -> Descended:
    """Take one step for each `minibatch` rows in order; the last has what is left. The arguments stay as they are.

    Raises BadLoss where a loss is not finite.
    """
    total = 0.0
    for begin in range(0, len(rows), minibatch):
        part = rows.between(begin, begin + minibatch)
        loss, gradient = model.loss_and_gradient(parameters, part)
        if not math.isfinite(loss):
            raise BadLoss("the loss is not a finite number: choose a smaller learning rate")
        total += loss * len(part)
        parameters, state = optimiser.step(parameters, gradient, state)
    return Descended(parameters, state, total / max(1, len(rows)))
