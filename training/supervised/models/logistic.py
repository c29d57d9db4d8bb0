"""Logistic regression: a weighted sum of dense features for each class."""

from __future__ import annotations

from typing import Literal

import numpy as np

from training.data.manifest import DataShape
from training.data.rows import DenseFeatures, Features, Rows
from training.supervised.models.losses import cross_entropy, outputs_of
from training.supervised.models.model import Floats, Model, Parameters, required_fit


class LogisticRegression(Model):
    """Logistic regression: for tables of numbers. It has two or more classes."""

    kind: Literal["logistic"] = "logistic"
    title = "logistic regression"

    def other_data(self, shape: DataShape) -> str:
        if shape.kind != "dense":
            return (
                "Logistic regression learns dense numbers; these features are sparse: choose click-through."
            )
        return ""

    def shapes(self, shape: DataShape) -> dict[str, tuple[int, ...]]:
        outputs = outputs_of(shape.classes)
        return {"weight": (shape.width, outputs), "bias": (outputs,)}

    def initial_parameters(self, shape: DataShape, seed: int) -> Parameters:
        """Return zeros: the loss is convex, so the seed changes nothing."""
        required_fit(self, shape)
        return {name: np.zeros(size, dtype=np.float32) for name, size in self.shapes(shape).items()}

    def macs(self, shape: DataShape) -> int:
        return shape.width * outputs_of(shape.classes)

    def outputs(self, parameters: Parameters, features: Features) -> Floats:
        assert isinstance(features, DenseFeatures)
        weight = parameters["weight"]
        result: Floats = features.numbers(weight.dtype) @ weight + parameters["bias"]
        return result

    def cross_entropy_and_gradient(self, parameters: Parameters, rows: Rows) -> tuple[float, Parameters]:
        assert isinstance(rows.features, DenseFeatures)
        weight = parameters["weight"]
        numbers = rows.features.numbers(weight.dtype)
        loss, slopes = cross_entropy(numbers @ weight + parameters["bias"], rows.targets)
        return loss, {"weight": numbers.T @ slopes, "bias": slopes.sum(axis=0)}
