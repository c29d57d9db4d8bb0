"""The convolution. In numpy consecutive ones take one picture at a time, in memory that is kept between calls.

One picture's arrays fit into a core's cache. Allocating megabytes for each call would take as long as the
computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from training.rl.networks.layer import Compute, Floats, Layer, PublishedLayer

if TYPE_CHECKING:
    import torch

    from training.artifacts.onnx_graph import OnnxGraph

_SCALE = np.float32(1.0 / 255.0)


@dataclass(frozen=True)
class Convolution(Layer):
    """A square convolution of a square picture; `pad` is (before, after) on both axes."""

    kind = "convolution"

    filters: int
    kernel: int
    stride: int
    pad: tuple[int, int] = (0, 0)

    @property
    def output_shape(self) -> tuple[int, ...]:
        side = (self.input_shape[1] + sum(self.pad) - self.kernel) // self.stride + 1
        return self.filters, side, side

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return self.filters, self.input_shape[0], self.kernel, self.kernel

    @property
    def macs(self) -> int:
        filters, rows, columns = self.output_shape
        return rows * columns * filters * self.input_shape[0] * self.kernel**2

    @property
    def published(self) -> list[Any]:
        return [[self.kernel, self.stride, *self.pad], None]

    @classmethod
    def in_numpy(cls, layers: Sequence[PublishedLayer], *, relu: bool) -> Compute:
        return _Convolutions([_Kernel.of(layer) for layer in layers], relu=relu)

    def in_torch(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        from torch.nn import functional

        weight, bias = parameters
        if any(self.pad):
            x = functional.pad(x, (*self.pad, *self.pad))
        return functional.conv2d(x, weight, bias, stride=self.stride)

    def in_onnx(self, graph: OnnxGraph, x: str, *parameters: str) -> str:
        before, after = self.pad
        sides = [before, before, after, after]
        return graph.node("Conv", x, *parameters, pads=sides, strides=[self.stride] * 2)


@dataclass(frozen=True)
class _Kernel:
    """One layer: `matrix` is [row · column · channel of the kernel, filter], `pad` the zeros (before, after)."""

    matrix: Floats
    bias: Floats
    kernel: int
    stride: int
    pad: tuple[int, int]

    @staticmethod
    def of(layer: PublishedLayer) -> _Kernel:
        weight, bias = layer.parameters
        kernel, stride, before, after = layer.facts
        # [filter, channel, row, column] → [row · column · channel, filter]
        matrix = np.ascontiguousarray(weight.transpose(2, 3, 1, 0).reshape(-1, weight.shape[0]))
        return _Kernel(matrix, bias, kernel, stride, (before, after))


class _Convolutions:
    """Consecutive layers, for one thread only: every call uses the same arrays between them."""

    def __init__(self, layers: list[_Kernel], *, relu: bool) -> None:
        self._layers = layers
        self._relu = relu
        self._shape: tuple[int, ...] = ()
        self._input: Floats = np.zeros((0, 0, 0), dtype=np.float32)
        self._stages: list[_Stage] = []

    def __call__(self, pictures: npt.NDArray[np.uint8]) -> Floats:
        """Return the last layer's output for [n, channel, row, column] bytes, as [n, row · column · filter]."""
        if pictures.shape[1:] != self._shape:
            self._lay_out(*pictures.shape[1:])
        last = self._stages[-1].result
        features = np.empty((len(pictures), last.size), dtype=np.float32)
        for i, picture in enumerate(pictures):
            # Channels last, so that a patch's numbers are contiguous.
            np.multiply(picture.transpose(1, 2, 0), _SCALE, out=self._input)
            for stage in self._stages:
                stage.run(relu=self._relu)
            features[i] = last.reshape(-1)
        return features

    def _lay_out(self, channels: int, rows: int, columns: int) -> None:
        self._shape = (channels, rows, columns)
        self._stages = []
        self._input = before = np.zeros((rows, columns, channels), dtype=np.float32)
        for layer in self._layers:
            self._stages.append(_Stage(layer, before))
            before = self._stages[-1].result


class _Stage:
    """A layer with its arrays, computed as a matrix product over the patches of `source` ([row, column, channel])."""

    def __init__(self, layer: _Kernel, source: Floats) -> None:
        self._layer = layer
        self._source = source
        begin, end = layer.pad
        self._padded = np.pad(source, ((begin, end), (begin, end), (0, 0))) if any(layer.pad) else source
        self._inside = self._padded[begin : begin + len(source), begin : begin + source.shape[1]]
        windows = sliding_window_view(self._padded, (layer.kernel, layer.kernel), axis=(0, 1))
        self._windows: npt.NDArray[Any] = windows[:: layer.stride, :: layer.stride].transpose(0, 1, 3, 4, 2)
        rows, columns = self._windows.shape[:2]
        self._patches = np.empty(self._windows.shape, dtype=np.float32)
        self._products = np.empty((rows * columns, layer.matrix.shape[1]), dtype=np.float32)
        self.result = self._products.reshape(rows, columns, -1)

    def run(self, *, relu: bool) -> None:
        """Compute `result` from the current source."""
        if self._padded is not self._source:
            np.copyto(self._inside, self._source)
        np.copyto(self._patches, self._windows)
        products = self._products
        np.matmul(self._patches.reshape(len(products), -1), self._layer.matrix, out=products)
        np.add(products, self._layer.bias, out=products)
        if relu:
            np.maximum(products, 0.0, out=products)
        else:
            np.tanh(products, out=products)
