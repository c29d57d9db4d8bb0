"""The whole loss of an update as a surface over all parameters, including the critic's.

Nitro's released code takes the Hessian of this surface, its paper that of the policy's surrogate alone. Sign and
scale are those of what is maximised: the surrogate, minus the critic's weighted error, plus the weighted entropy. A
penalty on the KL divergence is left out: it needs the previous policy, and no recipe here uses one.
"""

from __future__ import annotations

import torch

from training.rl.networks import Network, Parameters
from training.rl.spaces import Spaces
from training.rl.surfaces.tensor_surface import TensorSurface
from training.rl.surfaces.update_samples import LossWeights, UpdateSamples


class LossSurface(TensorSurface):
    """A `SurfacePoint` in torch, for any network."""

    def __init__(
        self,
        network: Network,
        spaces: Spaces,
        parameters: Parameters,
        update_samples: UpdateSamples,
        clip: float | None,
        weights: LossWeights,
    ) -> None:
        self._weights = weights
        super().__init__(network, spaces, parameters, update_samples, "surrogate", clip)

    def _own(self, parameters: Parameters) -> Parameters:
        return parameters

    def _sum(self, update_samples: UpdateSamples) -> torch.Tensor:
        values = self._network.value(self._leaves, self._tensor(update_samples.observations))
        errors = values - self._tensor(update_samples.targets)
        entropy = update_samples.size * self._distribution(update_samples).entropy()
        return (
            super()._sum(update_samples)
            - self._weights.value * 0.5 * (errors * errors).sum()
            + self._weights.entropy * entropy
        )
