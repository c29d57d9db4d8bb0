"""The forward pass of any network in torch, whose gradients torch takes."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from training.rl.networks.batch_shards import apply_in_shards
from training.rl.networks.layer import NamedLayer
from training.rl.networks.network import Network
from training.rl.spaces import Spaces


class TorchNetwork:
    """The forward pass of a network for given spaces. It holds no parameters: each call brings them."""

    def __init__(self, network: Network, spaces: Spaces) -> None:
        self.spaces = spaces
        layout = network.layout(spaces)
        self._trunk = _with_names(layout.trunk)
        self._towers = {"policy": _with_names(layout.policy), "value": _with_names(layout.value)}
        # In place: the value before an activation is not needed again, and its memory costs time.
        self._activate = torch.relu_ if network.activation == "relu" else torch.tanh_

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
            features = self._compute(own, self._trunk, self._prepared(seen))
            return tuple(self._compute(own, self._towers[name], features) for name in names)

        if not self.spaces.pictures:
            return forward(parameters, observations)

        return apply_in_shards(forward, parameters, observations)

    def _prepared(self, observations: torch.Tensor) -> torch.Tensor:
        if not self.spaces.pictures:
            return observations
        # Channels last: convolutions and their gradients take two thirds of the time on a CPU, with the same results.
        return observations.contiguous(memory_format=torch.channels_last).float().mul_(1.0 / 255.0)

    def _compute(
        self,
        parameters: Mapping[str, torch.Tensor],
        layers: list[tuple[NamedLayer, tuple[str, ...]]],
        x: torch.Tensor,
    ) -> torch.Tensor:
        for layer, names in layers:
            x = layer.layer.in_torch(x, *[parameters[name] for name in names])
            if layer.activated:
                x = self._activate(x)
        return x


def _with_names(layers: tuple[NamedLayer, ...]) -> list[tuple[NamedLayer, tuple[str, ...]]]:
    return [(layer, layer.parameters) for layer in layers]
