"""A network with a layer of its own: the first sees each number and its square."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from training.rl.networks.layer import Compute, Floats, Layer, PublishedLayer
from training.rl.networks.network import (
    Activation,
    Hidden,
    LogStd,
    LogStdInitial,
    Network,
    Orthogonal,
    Shared,
)
from training.rl.spaces import Spaces

if TYPE_CHECKING:
    import torch

    from training.artifacts.onnx_graph import OnnxGraph


@dataclass(frozen=True)
class SquaresLayer(Layer):
    """W [x, x²] scale + b, with three kinds of parameters."""

    kind = "squares"
    parts = ("weight", "bias", "scale")

    outputs: int

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.outputs,)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return self.outputs, 2 * self.input_shape[0]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return *super().shapes, (2 * self.input_shape[0],)

    @property
    def macs(self) -> int:
        return (2 * self.outputs + 3) * self.input_shape[0]

    def initial_parameters(
        self, rng: np.random.Generator, gain: float, *, orthogonal: bool
    ) -> tuple[Floats, ...]:
        scale = np.ones(2 * self.input_shape[0], dtype=np.float32)
        return *super().initial_parameters(rng, gain, orthogonal=orthogonal), scale

    @classmethod
    def in_numpy(cls, layers: Sequence[PublishedLayer], *, relu: bool) -> Compute:
        ((parameters, _, _),) = layers
        weight, bias, scale = parameters

        def compute(x: npt.NDArray[Any]) -> Floats:
            x = (np.concatenate([x, x * x], axis=1) * scale) @ weight.T + bias
            return np.maximum(x, 0.0) if relu else np.tanh(x)

        return compute

    def in_torch(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        import torch

        weight, bias, scale = parameters
        return torch.nn.functional.linear(torch.cat([x, x * x], dim=1) * scale, weight, bias)

    def in_onnx(self, graph: OnnxGraph, x: str, *parameters: str) -> str:
        weight, bias, scale = parameters
        both = graph.node("Concat", x, graph.node("Mul", x, x), axis=1)
        return graph.node("Gemm", graph.node("Mul", both, scale), weight, bias, transB=1)


class Squares(Network):
    """Squares: each number and its square, then layers that are fully connected."""

    kind: Literal["squares"] = "squares"
    units: int = 24
    hidden: Hidden = (16,)
    activation: Activation = "tanh"
    shared: Shared = True
    log_std: LogStd = "free"
    log_std_initial: LogStdInitial = 0.0
    orthogonal: Orthogonal = True

    def body(self, spaces: Spaces) -> Sequence[Layer]:
        if spaces.pictures:
            raise ValueError("squares are of numbers: choose cnn for pictures")
        return [SquaresLayer(spaces.observation_shape, self.units)]

    def in_words(self) -> str:
        return f"numbers and squares, {self.units}, then {self._hidden_in_words}"
