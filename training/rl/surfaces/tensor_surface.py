"""The surface of any policy network, with gradients and products by its Hessian from torch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from training.engine.torch_loading import device
from training.rl.networks import Floats, Network, Parameters
from training.rl.networks.batch_shards import PART
from training.rl.networks.distributions import Distribution
from training.rl.networks.torch_network import TorchNetwork
from training.rl.spaces import Spaces
from training.rl.surfaces.update_samples import ObjectiveKind, UpdateSamples, policy_part


class TensorSurface:
    """A `SurfacePoint` in torch: the gradient is differentiated once more along the vector.

    Computed in small parts, each with a graph that all products share; their sums are taken in order.
    """

    def __init__(
        self,
        network: Network,
        spaces: Spaces,
        parameters: Parameters,
        update_samples: UpdateSamples,
        objective: ObjectiveKind,
        clip: float | None,
    ) -> None:
        self._network = TorchNetwork(network, spaces)
        self._device = device()
        own = self._own(parameters)
        self._leaves = {name: self._tensor(array).requires_grad_() for name, array in own.items()}
        self._objective, self._clip = objective, clip
        self.size = sum(array.size for array in own.values())
        parts = range(0, update_samples.size, PART)
        self._gradients = [
            self._graph(update_samples.select(slice(begin, begin + PART)), update_samples.size)
            for begin in parts
        ]

    def _own(self, parameters: Parameters) -> Parameters:
        """Return the parameters that are moved."""
        return policy_part(parameters)

    def gradient(self) -> Floats:
        return self._summed([[g.detach() for g in part] for part in self._gradients])

    def product(self, vector: npt.NDArray[np.float64]) -> Floats:
        leaves = list(self._leaves.values())
        pieces = np.split(vector, np.cumsum([leaf.numel() for leaf in leaves])[:-1])
        along = [
            self._tensor(piece).to(leaf.dtype).reshape(leaf.shape)
            for piece, leaf in zip(pieces, leaves, strict=True)
        ]
        return self._summed([self._along(part, along) for part in self._gradients])

    def _along(self, gradients: list[torch.Tensor], along: list[torch.Tensor]) -> list[torch.Tensor]:
        leaves = list(self._leaves.values())
        if not any(gradient.requires_grad for gradient in gradients):
            # Every sample is clipped: the surface is flat here.
            return [torch.zeros_like(leaf) for leaf in leaves]
        return list(torch.autograd.grad(gradients, leaves, along, retain_graph=True, materialize_grads=True))

    def _graph(self, update_samples: UpdateSamples, of: int) -> list[torch.Tensor]:
        """Return this part's share of the gradient, with its graph."""
        leaves = list(self._leaves.values())
        share = self._sum(update_samples) / of
        return list(torch.autograd.grad(share, leaves, create_graph=True, materialize_grads=True))

    def _sum(self, update_samples: UpdateSamples) -> torch.Tensor:
        """Return the sum of the objective over these samples."""
        log_probs = self._distribution(update_samples).log_prob(self._tensor(update_samples.actions))
        advantages = self._tensor(update_samples.advantages)
        if self._objective == "policy_gradient":
            gains = advantages * log_probs
        else:
            ratios = torch.exp(torch.clamp(log_probs - self._tensor(update_samples.log_probs), -20.0, 20.0))
            gains = ratios * advantages
            if self._clip is not None:
                held = ratios.clamp(1.0 - self._clip, 1.0 + self._clip) * advantages
                gains = torch.where(gains <= held, gains, held.detach())
        return gains.sum()

    def _distribution(self, update_samples: UpdateSamples) -> Distribution:
        outputs = self._network.policy(self._leaves, self._tensor(update_samples.observations))
        return Distribution.of(outputs, self._leaves, self._network.spaces)

    def _summed(self, parts: list[list[torch.Tensor]]) -> Floats:
        total = [sum(pieces[1:], pieces[0]) for pieces in zip(*parts, strict=True)]
        flat: Floats = torch.cat([piece.reshape(-1) for piece in total]).cpu().numpy()
        return flat

    def _tensor(self, data: npt.NDArray[np.generic]) -> torch.Tensor:
        return torch.tensor(data, device=self._device)
