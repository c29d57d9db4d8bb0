"""Fully connected networks in numpy, with their gradients written out.

With a few thousand weights and a few hundred samples, autograd spends most of its time on bookkeeping. The same
matrix products, written into arrays that already exist, take a third of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from training.rl.networks import Floats, Network, Parameters
from training.rl.networks.layer import NamedLayer
from training.rl.spaces import Spaces


class NamedVector:
    """Parameters as one vector, which an optimiser moves, with a view of each parameter under its name."""

    def __init__(self, parameters: Parameters) -> None:
        """Copy `parameters`, in their order."""
        self.vector: Floats = np.concatenate([array.ravel() for array in parameters.values()])
        self.named: Parameters = {}
        begin = 0
        for name, array in parameters.items():
            self.named[name] = self.vector[begin : begin + array.size].reshape(array.shape)
            begin += array.size

    def views_of(self, wanted: Callable[[str], bool]) -> list[Floats]:
        """Return the parts of the vector with the wanted names, as few as there can be."""
        spans: list[list[int]] = []
        begin = 0
        for name, view in self.named.items():
            if wanted(name):
                if spans and spans[-1][1] == begin:
                    spans[-1][1] = begin + view.size
                else:
                    spans.append([begin, begin + view.size])
            begin += view.size
        return [self.vector[begin:end] for begin, end in spans]

    def copies(self) -> Parameters:
        """Return each parameter as a separate array."""
        return {name: view.copy() for name, view in self.named.items()}


@dataclass(frozen=True)
class ForwardPass:
    """The outputs of each layer in a forward pass, the input first: all that the backward pass needs."""

    trunk: list[Floats]
    policy: list[Floats]
    value: list[Floats]

    @property
    def outputs(self) -> Floats:
        return self.policy[-1]

    @property
    def values(self) -> Floats:
        return self.value[-1][:, 0]


class DenseLayer(NamedTuple):
    weight: str
    bias: str
    activated: bool


class DenseNetwork:
    """Forward and backward passes of an MLP. It holds no parameters: each call brings them, as float32 or float64."""

    def __init__(self, network: Network, spaces: Spaces) -> None:
        layout = network.layout(spaces)
        self._relu = network.activation == "relu"
        self._trunk = dense_layers(layout.trunk)
        self._policy = dense_layers(layout.policy)
        self._value = dense_layers(layout.value)

    def forward(self, parameters: Mapping[str, Floats], observations: Floats) -> ForwardPass:
        """Pass [n, size] observations through all layers. A shared trunk is computed once."""
        trunk = self._up(parameters, self._trunk, observations)
        return ForwardPass(
            trunk,
            self._up(parameters, self._policy, trunk[-1]),
            self._up(parameters, self._value, trunk[-1]),
        )

    def policy(self, parameters: Mapping[str, Floats], observations: Floats) -> Floats:
        return self._up(parameters, self._trunk + self._policy, observations)[-1]

    def value(self, parameters: Mapping[str, Floats], observations: Floats) -> Floats:
        return self._up(parameters, self._trunk + self._value, observations)[-1][:, 0]

    def backward(
        self,
        parameters: Mapping[str, Floats],
        forward_pass: ForwardPass,
        output_slopes: Floats,
        value_slopes: Floats,
        into: Mapping[str, Floats],
    ) -> None:
        """Write the loss's gradient by each weight and bias to `into`, given its gradient by the policy's outputs
        ([n, outputs]) and by the values ([n]).
        """
        shared = bool(self._trunk)
        policy = self._down(
            parameters, self._policy, forward_pass.policy, output_slopes, into, through=shared
        )
        value = self._down(
            parameters, self._value, forward_pass.value, value_slopes[:, None], into, through=shared
        )
        if shared:
            self._down(parameters, self._trunk, forward_pass.trunk, policy + value, into, through=False)

    def _up(
        self, parameters: Mapping[str, Floats], layers: tuple[DenseLayer, ...], x: Floats
    ) -> list[Floats]:
        """Return the input and each layer's output."""
        seen = [x]
        for layer in layers:
            x = x @ parameters[layer.weight].T
            x += parameters[layer.bias]
            if layer.activated:
                x = np.maximum(x, 0.0, out=x) if self._relu else np.tanh(x, out=x)
            seen.append(x)
        return seen

    def _down(
        self,
        parameters: Mapping[str, Floats],
        layers: tuple[DenseLayer, ...],
        seen: list[Floats],
        slopes: Floats,
        into: Mapping[str, Floats],
        *,
        through: bool,
    ) -> Floats:
        """Write the gradients by weights and biases, last layer first; with `through`, return that by the input as
        well.
        """
        ones = np.ones(len(slopes), dtype=slopes.dtype)
        for i in range(len(layers) - 1, -1, -1):
            layer = layers[i]
            if layer.activated:
                slopes *= (seen[i + 1] > 0.0) if self._relu else 1.0 - seen[i + 1] * seen[i + 1]
            np.matmul(slopes.T, seen[i], out=into[layer.weight])
            # A sum over rows written as a product: numpy's own sum takes three times as long.
            np.matmul(ones, slopes, out=into[layer.bias])
            if i or through:
                weight = parameters[layer.weight]
                # A product with a single column is as slow as numpy's sum.
                slopes = slopes @ weight if len(weight) > 1 else slopes * weight
        return slopes


def dense_layers(layers: tuple[NamedLayer, ...]) -> tuple[DenseLayer, ...]:
    """Return the names of dense layers' parameters."""
    found = []
    for layer in layers:
        weight, bias = layer.parameters
        found.append(DenseLayer(weight, bias, layer.activated))
    return tuple(found)
