"""PPO's clipped loss on chosen samples of a batch, and what it measures on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from training.algorithms.optimiser import Tensors
from training.networks import forward, log_probs_and_entropy
from training.spec import NetworkSpec

_MEASURED = ("policy_loss", "value_loss", "entropy", "approximate_kl", "clip_fraction")


class PPOLoss:
    """Holds a batch as tensors; called with the indices of a minibatch."""

    def __init__(
        self,
        *,
        clip: float,
        value_clip: float | None,
        value_coefficient: float,
        entropy_coefficient: float,
        normalise_advantages: bool,
        **samples: np.ndarray,
    ) -> None:
        self._clip = clip
        self._value_clip = value_clip
        self._value_coefficient = value_coefficient
        self._entropy_coefficient = entropy_coefficient
        self._normalise = normalise_advantages
        self._samples: dict[str, Any] = {
            name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in samples.items()
        }
        self._measured: list[torch.Tensor] = []

    def __call__(self, parameters: Tensors, network: NetworkSpec, chosen: torch.Tensor) -> torch.Tensor:
        batch = {name: tensor.index_select(0, chosen) for name, tensor in self._samples.items()}
        outputs = forward(batch["observations"], parameters, "policy", network)
        log_std = parameters.get("policy.log_std")
        log_probs, entropy = log_probs_and_entropy(outputs, log_std, batch["actions"])
        log_ratio = log_probs - batch["log_probs"]
        ratio = log_ratio.exp()
        advantages = batch["advantages"]
        if self._normalise and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        clipped = ratio.clamp(1.0 - self._clip, 1.0 + self._clip)
        policy_loss = -torch.minimum(advantages * ratio, advantages * clipped).mean()
        value_loss = self._value_loss(parameters, network, batch)
        mean_entropy = entropy.mean()
        with torch.no_grad():
            # k3 of Schulman's note on approximating KL: unbiased, never negative, low variance.
            kl = ((ratio - 1.0) - log_ratio).mean()
            outside = ((ratio - 1.0).abs() > self._clip).float().mean()
            self._measured.append(torch.stack([policy_loss, value_loss, mean_entropy, kl, outside]))
        return policy_loss + self._value_coefficient * value_loss - self._entropy_coefficient * mean_entropy

    def _value_loss(
        self, parameters: Tensors, network: NetworkSpec, batch: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        values = forward(batch["observations"], parameters, "value", network).squeeze(1)
        error = (values - batch["targets"]) ** 2
        if self._value_clip is not None:
            near = batch["values"] + (values - batch["values"]).clamp(-self._value_clip, self._value_clip)
            error = torch.maximum(error, (near - batch["targets"]) ** 2)
        return 0.5 * error.mean()

    def last_approximate_kl(self) -> float:
        return float(self._measured[-1][_MEASURED.index("approximate_kl")])

    def means(self) -> dict[str, float]:
        """Means over all minibatches so far, by name."""
        means = torch.stack(self._measured).mean(dim=0).tolist()
        return dict(zip(_MEASURED, means, strict=True))
