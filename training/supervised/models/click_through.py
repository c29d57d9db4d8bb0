"""A click-through classifier: logistic regression over hashed features, of which each row has few."""

from __future__ import annotations

from typing import Literal

import numpy as np

from training.data.manifest import DataShape
from training.data.rows import Features, Rows, SparseFeatures
from training.supervised.models.losses import cross_entropy, outputs_of
from training.supervised.models.model import Floats, Model, Parameters, required_fit


class ClickThrough(Model):
    """Click-through: for tables with text columns, hashed into sparse features."""

    kind: Literal["click_through"] = "click_through"
    title = "sparse click-through classifier"

    def other_data(self, shape: DataShape) -> str:
        if shape.kind != "sparse":
            return "The click-through classifier learns sparse features; these are dense: choose logistic regression."
        return ""

    def shapes(self, shape: DataShape) -> dict[str, tuple[int, ...]]:
        outputs = outputs_of(shape.classes)
        return {"weight": (shape.width, outputs), "bias": (outputs,)}

    def initial_parameters(self, shape: DataShape, seed: int) -> Parameters:
        """Return zeros: the loss is convex, so the seed changes nothing."""
        required_fit(self, shape)
        return {name: np.zeros(size, dtype=np.float32) for name, size in self.shapes(shape).items()}

    def macs(self, shape: DataShape) -> int:
        return max(1, round(shape.nonzeros)) * outputs_of(shape.classes)

    def outputs(self, parameters: Parameters, features: Features) -> Floats:
        assert isinstance(features, SparseFeatures)
        return features.times(parameters["weight"]) + parameters["bias"]

    def cross_entropy_and_gradient(self, parameters: Parameters, rows: Rows) -> tuple[float, Parameters]:
        assert isinstance(rows.features, SparseFeatures)
        loss, slopes = cross_entropy(self.outputs(parameters, rows.features), rows.targets)
        return loss, {"weight": rows.features.transposed_times(slopes), "bias": slopes.sum(axis=0)}
