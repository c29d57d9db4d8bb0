"""Action distributions in torch, with gradients: log-probabilities, entropies and KL divergences.

Discrete actions are independent categoricals (one for Discrete, several for MultiDiscrete); continuous ones are
independent normals whose deviation is a free parameter or the second half of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from training.rl.spaces import Spaces

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
LOG_STD_LIMITS = (-5.0, 2.0)


@dataclass(frozen=True)
class Distribution:
    """A policy's distribution over the actions in [n] states. `log_p` holds one matrix for each discrete action."""

    log_p: tuple[torch.Tensor, ...] = ()
    mean: torch.Tensor | None = None
    log_std: torch.Tensor | None = None

    @staticmethod
    def of(outputs: torch.Tensor, parameters: Mapping[str, torch.Tensor], spaces: Spaces) -> Distribution:
        if spaces.discrete:
            if len(spaces.action_counts) == 1:
                return Distribution(log_p=(torch.log_softmax(outputs, dim=1),))
            parts = torch.split(outputs, list(spaces.action_counts), dim=1)
            return Distribution(log_p=tuple(torch.log_softmax(part, dim=1) for part in parts))
        free = parameters.get("policy.log_std")
        if free is not None:
            return Distribution(mean=outputs, log_std=free)
        mean, log_std = outputs.chunk(2, dim=1)
        return Distribution(mean=mean, log_std=log_std.clamp(*LOG_STD_LIMITS))

    def log_prob(self, actions: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of each state's action: [n] or [n, k] integers, or [n, k] real numbers."""
        if self.log_p:
            if len(self.log_p) == 1:
                return self.log_p[0].gather(1, actions.reshape(-1, 1)).squeeze(1)
            parts = [p.gather(1, actions[:, i : i + 1]) for i, p in enumerate(self.log_p)]
            return torch.cat(parts, dim=1).sum(dim=1)
        assert self.mean is not None
        assert self.log_std is not None
        scaled = (actions - self.mean) * torch.exp(-self.log_std)
        return -0.5 * (scaled * scaled).sum(dim=1) - self._log_normaliser()

    def entropy(self) -> torch.Tensor:
        """Return the mean entropy over the states."""
        if self.log_p:
            return torch.stack([-(p.exp() * p).sum(dim=1).mean() for p in self.log_p]).sum()
        assert self.log_std is not None
        spread = self.log_std.sum(dim=-1).mean()
        return spread + (0.5 + _HALF_LOG_TWO_PI) * self.log_std.shape[-1]

    def divergence_from(self, older: Distribution) -> torch.Tensor:
        """Return KL(older ‖ this) of each state."""
        if self.log_p:
            pairs = zip(older.log_p, self.log_p, strict=True)
            return torch.stack([(p.exp() * (p - q)).sum(dim=1) for p, q in pairs]).sum(dim=0)
        assert self.mean is not None
        assert self.log_std is not None
        assert older.mean is not None
        assert older.log_std is not None
        ratio = torch.exp(2.0 * (older.log_std - self.log_std))
        shift = ((older.mean - self.mean) * torch.exp(-self.log_std)) ** 2
        return (0.5 * (ratio + shift - 1.0) + self.log_std - older.log_std).sum(dim=1)

    def _log_normaliser(self) -> torch.Tensor:
        assert self.log_std is not None
        return self.log_std.sum(dim=-1) + _HALF_LOG_TWO_PI * self.log_std.shape[-1]
