"""LeNet (LeCun et al. 1998): two convolutions, each followed by averaging, then fully connected layers.

Convolutions are matrix products over patches. Arrays between them are [channel, row, column, picture], so that one
product covers all pictures of a chunk, and a patch's numbers are copied by rows of all pictures. A chunk has few
pictures, whose patches stay in a core's cache.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from pydantic import field_validator

from training.base_model import setting
from training.data.manifest import DataShape
from training.data.rows import DenseFeatures, Features, Rows
from training.supervised.models.losses import cross_entropy, outputs_of
from training.supervised.models.model import Floats, Model, Parameters, required_fit

KERNEL, PAD = 5, 2
SIDE_LIMIT = 256
_CHUNK = 32


class LeNet(Model):
    """LeNet: for square grey pictures, of 28 × 28 pixels as a rule."""

    kind: Literal["lenet"] = "lenet"
    title = "LeNet"
    filters: tuple[int, int] = setting((6, 16), "Filters", "Of both convolutions.", advanced=True)
    hidden: tuple[int, ...] = setting(
        (120, 84),
        "Hidden layers",
        "Sizes of the fully connected layers between convolutions and outputs.",
        max_length=4,
        advanced=True,
    )
    activation: Literal["tanh", "relu"] = setting("tanh", "Activation", advanced=True)

    @field_validator("filters", "hidden")
    @classmethod
    def _sizes_in_range(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(not 1 <= size <= 4096 for size in value):
            raise ValueError("each layer must have between 1 and 4096 units")
        return value

    def other_data(self, shape: DataShape) -> str:
        if shape.picture is None:
            return "LeNet learns grey pictures; these features are no picture: choose another model."
        rows, columns = shape.picture
        if rows != columns or rows % 4 or not 12 <= rows <= SIDE_LIMIT:
            return (
                f"LeNet needs square pictures of 12 × 12 to {SIDE_LIMIT} × {SIDE_LIMIT} pixels, whose side is a"
                f" multiple of 4; these are {rows} × {columns}."
            )
        return ""

    def shapes(self, shape: DataShape) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        channels = 1
        for i, filters in enumerate(self.filters):
            shapes[f"convolution.{i}.weight"] = filters, channels, KERNEL, KERNEL
            shapes[f"convolution.{i}.bias"] = (filters,)
            channels = filters
        for i, (inputs, outputs) in enumerate(self._dense_sizes(shape)):
            shapes[f"dense.{i}.weight"] = inputs, outputs
            shapes[f"dense.{i}.bias"] = (outputs,)
        return shapes

    def initial_parameters(self, shape: DataShape, seed: int) -> Parameters:
        """Return Glorot's uniform weights and zero biases."""
        required_fit(self, shape)
        rng = np.random.Generator(np.random.PCG64(seed))
        parameters: Parameters = {}
        for name, size in self.shapes(shape).items():
            if name.endswith("bias"):
                parameters[name] = np.zeros(size, dtype=np.float32)
            elif name.startswith("dense"):
                parameters[name] = _glorot(rng, size, *size)
            else:
                filters, channels, area = size[0], size[1], KERNEL * KERNEL
                parameters[name] = _glorot(rng, size, channels * area, filters * area)
        return parameters

    def macs(self, shape: DataShape) -> int:
        side = math.isqrt(shape.width)
        first, second = self.filters
        area = KERNEL * KERNEL
        convolutions = side**2 * first * area + (side // 2 - KERNEL + 1) ** 2 * second * first * area
        return convolutions + sum(inputs * outputs for inputs, outputs in self._dense_sizes(shape))

    def outputs(self, parameters: Parameters, features: Features) -> Floats:
        assert isinstance(features, DenseFeatures)
        return np.concatenate(
            [
                self._forward(parameters, features.between(begin, begin + _CHUNK)).dense[-1]
                for begin in range(0, max(1, len(features)), _CHUNK)
            ]
        )

    def cross_entropy_and_gradient(self, parameters: Parameters, rows: Rows) -> tuple[float, Parameters]:
        total, gradient = 0.0, {name: np.zeros_like(array) for name, array in parameters.items()}
        for begin in range(0, len(rows), _CHUNK):
            part = rows.between(begin, begin + _CHUNK)
            assert isinstance(part.features, DenseFeatures)
            forward = self._forward(parameters, part.features)
            loss, slopes = cross_entropy(forward.dense[-1], part.targets)
            share = len(part) / len(rows)
            slopes *= slopes.dtype.type(share)
            total += loss * share
            self._backward(parameters, forward, slopes, gradient)
        return total, gradient

    def _dense_sizes(self, shape: DataShape) -> list[tuple[int, int]]:
        side = (math.isqrt(shape.width) // 2 - KERNEL + 1) // 2
        sizes = [self.filters[1] * side * side, *self.hidden, outputs_of(shape.classes)]
        return list(itertools.pairwise(sizes))

    def _forward(self, parameters: Mapping[str, Floats], features: DenseFeatures) -> _Forward:
        side = math.isqrt(features.width)
        dtype = parameters["dense.0.weight"].dtype
        x = np.zeros((1, side + 2 * PAD, side + 2 * PAD, len(features)), dtype=dtype)
        x[0, PAD:-PAD, PAD:-PAD] = features.numbers(dtype).T.reshape(side, side, -1)
        patches, activated = [], []
        for i in range(2):
            weight, bias = parameters[f"convolution.{i}.weight"], parameters[f"convolution.{i}.bias"]
            patches.append(_patches(x))
            products = weight.reshape(len(weight), -1) @ patches[-1]
            products += bias[:, None]
            shape = (len(weight), x.shape[1] - KERNEL + 1, x.shape[2] - KERNEL + 1, x.shape[3])
            activated.append(self._activate(products).reshape(shape))
            x = _averaged(activated[-1])
        dense = [x.reshape(-1, len(features)).T]
        last = len(self.hidden)
        for i in range(last + 1):
            y = dense[-1] @ parameters[f"dense.{i}.weight"] + parameters[f"dense.{i}.bias"]
            dense.append(y if i == last else self._activate(y))
        return _Forward(patches, activated, dense)

    def _backward(
        self, parameters: Mapping[str, Floats], forward: _Forward, slopes: Floats, gradient: Parameters
    ) -> None:
        """Add the gradient of a chunk, given its gradient by the outputs."""
        for i in range(len(self.hidden), -1, -1):
            gradient[f"dense.{i}.weight"] += forward.dense[i].T @ slopes
            gradient[f"dense.{i}.bias"] += slopes.sum(axis=0)
            slopes = slopes @ parameters[f"dense.{i}.weight"].T
            if i:
                slopes *= self._steepness(forward.dense[i])
        filters, rows, columns, pictures = forward.activated[1].shape
        pooled = slopes.T.reshape(filters, rows // 2, columns // 2, pictures)
        for i in (1, 0):
            activated = forward.activated[i]
            by_products = _spread(pooled, activated.shape)
            by_products *= self._steepness(activated)
            flat = by_products.reshape(len(activated), -1)
            weight = parameters[f"convolution.{i}.weight"]
            gradient[f"convolution.{i}.weight"] += (flat @ forward.patches[i].T).reshape(weight.shape)
            gradient[f"convolution.{i}.bias"] += flat.sum(axis=1)
            if i:
                by_patches = weight.reshape(len(weight), -1).T @ flat
                pooled = _overlapped(by_patches, weight.shape[1], rows, columns)

    def _activate(self, x: Floats) -> Floats:
        """Apply the activation in place."""
        return np.tanh(x, out=x) if self.activation == "tanh" else np.maximum(x, 0.0, out=x)

    def _steepness(self, activated: Floats) -> Floats:
        """Return the activation's derivative, from its value."""
        steepness: Floats = 1.0 - activated * activated if self.activation == "tanh" else activated > 0.0
        return steepness


class _Forward(NamedTuple):
    """What the backward pass needs of a forward pass, layer by layer."""

    patches: list[Floats]
    activated: list[Floats]
    dense: list[Floats]


def _glorot(rng: np.random.Generator, shape: tuple[int, ...], inputs: int, outputs: int) -> Floats:
    bound = np.sqrt(6.0 / (inputs + outputs))
    return rng.uniform(-bound, bound, shape).astype(np.float32)


def _patches(x: Floats) -> Floats:
    """Return the kernel's patches of [channel, row, column, picture], as [channel · kernel, row · column · picture]."""
    channels, rows, columns, pictures = x.shape
    rows, columns = rows - KERNEL + 1, columns - KERNEL + 1
    patches = np.empty((channels, KERNEL, KERNEL, rows, columns, pictures), dtype=x.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            patches[:, i, j] = x[:, i : i + rows, j : j + columns]
    return patches.reshape(channels * KERNEL * KERNEL, -1)


def _overlapped(by_patches: Floats, channels: int, rows: int, columns: int) -> Floats:
    """Return the sum over all patches at each place that they were taken from: the transpose of `_patches`."""
    parts = by_patches.reshape(channels, KERNEL, KERNEL, rows, columns, -1)
    total = np.zeros((channels, rows + KERNEL - 1, columns + KERNEL - 1, parts.shape[-1]), dtype=parts.dtype)
    for i in range(KERNEL):
        for j in range(KERNEL):
            total[:, i : i + rows, j : j + columns] += parts[:, i, j]
    return total


def _averaged(x: Floats) -> Floats:
    """Return the means of squares of two by two."""
    means = x[:, ::2, ::2] + x[:, 1::2, ::2]
    means += x[:, ::2, 1::2]
    means += x[:, 1::2, 1::2]
    means *= x.dtype.type(0.25)
    return means


def _spread(by_means: Floats, shape: tuple[int, ...]) -> Floats:
    """Return the gradient by the numbers that `_averaged` averaged."""
    spread = np.empty(shape, dtype=by_means.dtype)
    quarter = by_means * by_means.dtype.type(0.25)
    for i in (0, 1):
        for j in (0, 1):
            spread[:, i::2, j::2] = quarter
    return spread
