"""The base of all models: fields are the form of a model, methods its mathematics."""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel, setting
from training.data.manifest import DataShape
from training.data.rows import Features, Rows
from training.supervised.models.losses import cross_entropy, probabilities_of

Floats = npt.NDArray[Any]
PARAMETERS_LIMIT = 20_000_000
"""Their gradient has 80 MB, and must fit in an answer beside what a filter keeps."""
Parameters = dict[str, Floats]
"""Arrays by name, float32; float64 where a test wants exact gradients. Names that end in `bias` bear no penalty."""


class Model(FrozenModel):
    """A model for rows of one kind. It holds no parameters: each call brings them.

    The loss is the mean cross-entropy, plus `l2` / 2 times the sum of squared weights (biases are free).
    """

    title: ClassVar[str]

    l2: float = setting(
        1e-4,
        "L2 penalty",
        "Added to the loss: this / 2 times the sum of squared weights.",
        ge=0.0,
        le=100.0,
        advanced=True,
    )

    def misfit(self, shape: DataShape) -> str:
        """Return in one sentence why the model cannot learn such data; empty if it can."""
        if sentence := self.other_data(shape):
            return sentence
        count = sum(map(prod, self.shapes(shape).values()))
        if count <= PARAMETERS_LIMIT:
            return ""
        return (
            f"The model would have {count:,} parameters; at most {PARAMETERS_LIMIT:,} are allowed: choose a smaller"
            " model, fewer columns or places of text, or a target with fewer classes."
        )

    @abstractmethod
    def other_data(self, shape: DataShape) -> str:
        """Return in one sentence why the data is of a kind that the model does not learn; empty if it is not."""

    @abstractmethod
    def shapes(self, shape: DataShape) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters by name, for data that the model learns. It allocates nothing."""

    @abstractmethod
    def initial_parameters(self, shape: DataShape, seed: int) -> Parameters:
        """Return the first parameters, float32. Raises ValueError if the model does not fit."""

    @abstractmethod
    def macs(self, shape: DataShape) -> int:
        """Return the multiply-accumulates of one forward pass of one row, without biases and activations."""

    @abstractmethod
    def outputs(self, parameters: Parameters, features: Features) -> Floats:
        """Return the outputs, as [row, output] (`training.supervised.models.losses`)."""

    @abstractmethod
    def cross_entropy_and_gradient(self, parameters: Parameters, rows: Rows) -> tuple[float, Parameters]:
        """Return the mean cross-entropy of the rows and its gradient, without the penalty."""

    def loss_and_gradient(self, parameters: Parameters, rows: Rows) -> tuple[float, Parameters]:
        """Return the loss of the rows, with the penalty, and its gradient by each parameter."""
        loss, gradient = self.cross_entropy_and_gradient(parameters, rows)
        if self.l2:
            for name, weight in parameters.items():
                if not name.endswith("bias"):
                    gradient[name] += weight.dtype.type(self.l2) * weight
        return loss + self.penalty(parameters), gradient

    def loss(self, parameters: Parameters, rows: Rows) -> float:
        """Return the mean cross-entropy of the rows, without the penalty: what a model is judged by."""
        return cross_entropy(self.outputs(parameters, rows.features), rows.targets)[0]

    def penalty(self, parameters: Parameters) -> float:
        if not self.l2:
            return 0.0
        weights = (array for name, array in parameters.items() if not name.endswith("bias"))
        squares = sum(float(np.vdot(weight, weight)) for weight in weights)
        return 0.5 * self.l2 * squares

    def predict(self, parameters: Parameters, features: Features) -> Floats:
        """Return each class's probability, as [row, class]."""
        return probabilities_of(self.outputs(parameters, features))


def required_fit(model: Model, shape: DataShape) -> None:
    """Raise ValueError if the model cannot learn such data."""
    reason = model.misfit(shape)
    if reason:
        raise ValueError(reason)


def parameter_count(parameters: Parameters) -> int:
    return sum(array.size for array in parameters.values())
