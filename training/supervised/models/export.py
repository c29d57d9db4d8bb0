"""Exports a model as an ONNX graph, with the scaling of its columns inside.

Input of dense features: `features` [batch, width] as they stand in a user's file: float64 where they are standardised,
uint8 where they are bytes, float32 otherwise. Input of sparse features: `places` (int64) and `values` (float32), both
[batch, slots]; unused slots have the value 0. Outputs: `probabilities` [batch, class], and `label` [batch], the number
of the likeliest class. The model's metadata names the classes and the columns.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from training.artifacts.onnx_graph import OnnxGraph
from training.data.manifest import Manifest
from training.supervised.models.lenet import PAD, LeNet
from training.supervised.models.model import Model, Parameters


def export_onnx(
    model: Model, parameters: Parameters, manifest: Manifest, *, version: int = 0, about: str = ""
) -> bytes:
    """Return the model as the bytes of a checked ONNX model."""
    graph = _Graph()
    if manifest.kind == "sparse":
        inputs = [
            helper.make_tensor_value_info("places", TensorProto.INT64, ["batch", "slots"]),
            helper.make_tensor_value_info("values", TensorProto.FLOAT, ["batch", "slots"]),
        ]
        outputs = graph.sparse_sum(parameters)
    else:
        kind = helper.np_dtype_to_tensor_dtype(_dtype_of(manifest))
        inputs = [helper.make_tensor_value_info("features", kind, ["batch", manifest.width])]
        features = graph.scaled(manifest)
        if isinstance(model, LeNet):
            outputs = graph.lenet(features, model, parameters, manifest.width)
        else:
            outputs = graph.dense(features, parameters["weight"], parameters["bias"], "")
    graph.classes(outputs, len(manifest.classes))
    return graph.model(
        "model",
        inputs,
        [
            helper.make_tensor_value_info(
                "probabilities", TensorProto.FLOAT, ["batch", len(manifest.classes)]
            ),
            helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"]),
        ],
        version=version,
        about=about,
        facts={
            "kind": manifest.kind,
            "target": manifest.target,
            "classes": json.dumps(manifest.classes),
            "columns": json.dumps(
                [
                    column.model_dump(exclude={"missing", "frequent"})
                    | ({"category": column.category} if column.category else {})
                    for column in manifest.columns
                ]
            ),
            "width": str(manifest.width),
            "dtype": _dtype_of(manifest).name,
            "data": manifest.hash,
        },
    )


def _dtype_of(manifest: Manifest) -> np.dtype[Any]:
    """Return the type of the features. Numbers that are scaled keep all their digits until then."""
    if manifest.of_bytes:
        return np.dtype(np.uint8)
    return np.dtype(np.float64 if _is_scaled(manifest) else np.float32)


def _is_scaled(manifest: Manifest) -> bool:
    return any(column.mean != 0.0 or column.scale != 1.0 for column in manifest.columns)


class _Graph(OnnxGraph):
    def scaled(self, manifest: Manifest) -> str:
        """Return the features as the model learned them: bytes from 0 to 1, columns standardised."""
        if manifest.of_bytes:
            numbers = self.node("Cast", "features", to=TensorProto.FLOAT)
            return self.node("Mul", numbers, self.constant("byte_step", np.float32(1.0 / 255.0)))
        if not _is_scaled(manifest):
            return "features"
        mean = self.constant("mean", np.array([column.mean for column in manifest.columns]))
        scale = self.constant("scale", np.array([column.scale for column in manifest.columns]))
        scaled = self.node("Mul", self.node("Sub", "features", mean), scale)
        return self.node("Cast", scaled, to=TensorProto.FLOAT)

    def dense(self, x: str, weight: Any, bias: Any, name: str) -> str:
        return self.node(
            "Gemm", x, self.constant(f"{name}weight", weight), self.constant(f"{name}bias", bias)
        )

    def sparse_sum(self, parameters: Parameters) -> str:
        """Return the sum over slots of each slot's weights times its value."""
        weights = self.node("Gather", self.constant("weight", parameters["weight"]), "places", axis=0)
        last = self.constant("last_axis", np.array([2], dtype=np.int64))
        slots = self.constant("slots_axis", np.array([1], dtype=np.int64))
        products = self.node("Mul", weights, self.node("Unsqueeze", "values", last))
        total = self.node("ReduceSum", products, slots, keepdims=0)
        return self.node("Add", total, self.constant("bias", parameters["bias"]))

    def lenet(self, features: str, model: LeNet, parameters: Parameters, width: int) -> str:
        activation = "Tanh" if model.activation == "tanh" else "Relu"
        side = math.isqrt(width)
        x = self.node(
            "Reshape", features, self.constant("picture", np.array([-1, 1, side, side], dtype=np.int64))
        )
        for i, pad in ((0, PAD), (1, 0)):
            name = f"convolution.{i}"
            weight = self.constant(f"{name}.weight", parameters[f"{name}.weight"])
            bias = self.constant(f"{name}.bias", parameters[f"{name}.bias"])
            x = self.node(activation, self.node("Conv", x, weight, bias, pads=[pad] * 4))
            x = self.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = self.node("Flatten", x, axis=1)
        for i in range(len(model.hidden) + 1):
            name = f"dense.{i}"
            x = self.dense(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"], f"{name}.")
            x = x if i == len(model.hidden) else self.node(activation, x)
        return x

    def classes(self, outputs: str, count: int) -> None:
        """Add each class's probability, and the likeliest class."""
        if count == 2:
            both = self.node("Concat", self.node("Neg", outputs), outputs, axis=1)
            self.node("Sigmoid", both, gives="probabilities")
        else:
            self.node("Softmax", outputs, gives="probabilities", axis=1)
        self.node("ArgMax", "probabilities", gives="label", axis=1, keepdims=0)
