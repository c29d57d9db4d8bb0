"""The fully connected layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from training.rl.networks.layer import Compute, Floats, Layer, PublishedLayer

if TYPE_CHECKING:
    import torch

    from training.artifacts.onnx_graph import OnnxGraph


@dataclass(frozen=True)
class Dense(Layer):
    """All outputs of all inputs. A picture that a convolution gives is flattened."""

    kind = None

    outputs: int

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outputs,)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return self.outputs, prod(self.input_shape)

    @property
    def macs(self) -> int:
        return self.outputs * prod(self.input_shape)

    @property
    def facts(self) -> list[int] | None:
        """The channels and the side of the picture that it flattens; None without one."""
        return list(self.input_shape[:2]) if len(self.input_shape) > 1 else None

    @classmethod
    def in_numpy(cls, layers: Sequence[PublishedLayer], *, relu: bool) -> Compute:
        prepared = [(_transposed(layer), layer.parameters[1], layer.activated) for layer in layers]

        def compute(x: npt.NDArray[Any]) -> Floats:
            for weight, bias, activated in prepared:
                x = x @ weight
                x += bias
                if activated:
                    x = np.maximum(x, 0.0, out=x) if relu else np.tanh(x, out=x)
            return x

        return compute

    def in_torch(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        from torch.nn import functional

        return functional.linear(x.flatten(1) if x.dim() > 2 else x, *parameters)

    def in_onnx(self, graph: OnnxGraph, x: str, *parameters: str) -> str:
        flat = x if len(self.input_shape) == 1 else graph.node("Flatten", x, axis=1)
        return graph.node("Gemm", flat, *parameters, transB=1)


def _transposed(layer: PublishedLayer) -> Floats:
    """Return the weights transposed, because rows of observations are multiplied with them."""
    weight = layer.parameters[0]
    if layer.facts is not None:
        channels, size = layer.facts
        # The learner flattens [channel, row, column]; here a picture arrives as [row, column, channel].
        weight = weight.reshape(-1, channels, size, size).transpose(0, 2, 3, 1).reshape(len(weight), -1)
    return np.ascontiguousarray(weight.T)
