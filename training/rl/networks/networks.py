"""Networks with gradients: their parameters as named arrays, and their forward pass in torch.

Parameters are plain arrays under names like `policy.0.weight`, so they are sent, stored and compared as they are.
Only the forward pass imports torch; making the first parameters needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from training.rl.networks.architectures import Convolution, Layer, Network, Towers
from training.rl.spaces import Spaces

if TYPE_CHECKING:
    import torch

Floats = npt.NDArray[np.float32]
Parameters = dict[str, Floats]
LOG_STD = "policy.log_std"
"""The name of a free log-deviation, which the network does not say."""


def initial_parameters(network: Network, spaces: Spaces, seed: int) -> Parameters:
    """Return orthogonal weights (√2 hidden, 0.01 policy head, 1 value head) or uniform ones, and zero biases."""
    rng = np.random.Generator(np.random.PCG64(seed))
    layout = network.layout(spaces)
    parameters: Parameters = {}
    for tower, layers, head_gain in (
        ("trunk", layout.trunk, None),
        ("policy", layout.policy, 0.01),
        ("value", layout.value, 1.0),
    ):
        for i, layer in enumerate(layers):
            head = head_gain is not None and i == len(layers) - 1
            gain = head_gain if head and head_gain is not None else float(np.sqrt(2.0))
            weight = _weights(rng, layer, gain, network.orthogonal)
            parameters[f"{tower}.{i}.weight"] = weight
            parameters[f"{tower}.{i}.bias"] = np.zeros(len(weight), dtype=np.float32)
    if not spaces.discrete:
        if network.log_std == "free":
            size = len(spaces.action_low)
            parameters[LOG_STD] = np.full(size, network.log_std_initial, dtype=np.float32)
        else:
            parameters[f"policy.{len(layout.policy) - 1}.bias"][len(spaces.action_low) :] = (
                network.log_std_initial
            )
    return parameters


@lru_cache(maxsize=16)
def parameter_shapes(network: Network, spaces: Spaces) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter, in the order of `initial_parameters`."""
    layout = network.layout(spaces)
    shapes: dict[str, tuple[int, ...]] = {}
    for tower in ("trunk", "policy", "value"):
        for i, layer in enumerate(getattr(layout, tower)):
            shapes[f"{tower}.{i}.weight"] = _shape(layer)
            shapes[f"{tower}.{i}.bias"] = _shape(layer)[:1]
    if not spaces.discrete and network.log_std == "free":
        shapes[LOG_STD] = (len(spaces.action_low),)
    return shapes


def _shape(layer: Layer) -> tuple[int, ...]:
    if isinstance(layer, Convolution):
        return layer.filters, layer.inputs, layer.kernel, layer.kernel
    return layer.outputs, layer.inputs


def _weights(rng: np.random.Generator, layer: Layer, gain: float, orthogonal: bool) -> Floats:
    shape = _shape(layer)
    rows, columns = shape[0], int(np.prod(shape[1:]))
    if not orthogonal:
        # Torch's own default, which Stable-Baselines3's tuned MuJoCo recipes use.
        bound = 1.0 / np.sqrt(columns)
        return rng.uniform(-bound, bound, shape).astype(np.float32)
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q *= np.sign(np.diag(r))
    return np.ascontiguousarray(gain * (q if rows >= columns else q.T), dtype=np.float32).reshape(shape)


class TorchNetwork:
    """The forward pass of a network for given spaces. It holds no parameters: each call brings them."""

    def __init__(self, network: Network, spaces: Spaces) -> None:
        self.spaces = spaces
        self._layout: Towers = network.layout(spaces)
        self._relu = network.activation == "relu"

    def policy_and_value(
        self, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return policy outputs and values of [n, …] observations. A shared trunk is computed once."""
        outputs, values = self._heads(parameters, observations, ("policy", "value"))
        return outputs, values.squeeze(1)

    def policy(self, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor) -> torch.Tensor:
        return self._heads(parameters, observations, ("policy",))[0]

    def value(self, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor) -> torch.Tensor:
        return self._heads(parameters, observations, ("value",))[0].squeeze(1)

    def _heads(
        self, parameters: Mapping[str, torch.Tensor], observations: torch.Tensor, names: tuple[str, ...]
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs of the named towers. Pictures are enough work to spread over cores."""

        def forward(own: Mapping[str, torch.Tensor], seen: torch.Tensor) -> tuple[torch.Tensor, ...]:
            features = self._tower(own, "trunk", self._layout.trunk, self._prepared(seen), last=True)
            return tuple(
                self._tower(own, name, getattr(self._layout, name), features, last=False) for name in names
            )

        if not self.spaces.pictures:
            return forward(parameters, observations)
        from training.rl.networks.batch_shards import apply_in_shards

        return apply_in_shards(forward, parameters, observations)

    def _prepared(self, observations: torch.Tensor) -> torch.Tensor:
        import torch

        if not self.spaces.pictures:
            return observations
        # Channels last: convolutions and their gradients take two thirds of the time on a CPU, with the same results.
        return observations.contiguous(memory_format=torch.channels_last).float().mul_(1.0 / 255.0)

    def _tower(
        self,
        parameters: Mapping[str, torch.Tensor],
        name: str,
        layers: tuple[Layer, ...],
        x: torch.Tensor,
        *,
        last: bool,
    ) -> torch.Tensor:
        """Apply layers with activations between them, and after the last one if `last`."""
        import torch
        from torch.nn import functional

        for i, layer in enumerate(layers):
            weight, bias = parameters[f"{name}.{i}.weight"], parameters[f"{name}.{i}.bias"]
            if isinstance(layer, Convolution):
                if any(layer.pad):
                    x = functional.pad(x, (*layer.pad, *layer.pad))
                x = functional.conv2d(x, weight, bias, stride=layer.stride)
            else:
                x = functional.linear(x.flatten(1) if x.dim() > 2 else x, weight, bias)
            if last or i < len(layers) - 1:
                # In place: the value before an activation is not needed again, and its memory costs time.
                x = torch.relu_(x) if self._relu else torch.tanh_(x)
        return x
