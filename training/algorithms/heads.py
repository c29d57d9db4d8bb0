"""What a policy's outputs say of the actions taken, in numpy, and how a loss changes with those outputs.

The twins of `training.distributions`, whose gradients torch works out. A loss reaches the outputs in two ways: by the
log-probability of each sample's action (`slopes`, [n]) and by the mean entropy (`entropy_slope`, one number).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from training.environments.spaces import Spaces
from training.inference import LOG_STD_LIMITS
from training.networks import Floats

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Head(Protocol):
    log_probs: Floats

    @property
    def entropy(self) -> Any:
        """Mean over the samples."""

    def backward(self, slopes: Floats, entropy_slope: float, into: Mapping[str, Floats]) -> Floats:
        """The loss's slopes by the outputs. That by a free log-deviation is written `into` its place."""


def head_of(
    outputs: Floats, actions: npt.NDArray[Any], parameters: Mapping[str, Floats], spaces: Spaces
) -> Head:
    if spaces.discrete:
        return Categoricals(outputs, actions.reshape(len(outputs), -1), spaces.action_counts)
    return Normals(outputs, actions, parameters.get("policy.log_std"))


class Categoricals:
    """Independent choices, each by a softmax over its part p of the outputs z.

    ∂ log p_a / ∂z = 1_a − p;   ∂H / ∂z = −p (log p + H)
    """

    def __init__(self, outputs: Floats, actions: npt.NDArray[np.int64], counts: tuple[int, ...]) -> None:
        ends = np.cumsum(counts)[:-1]
        self._log_p = [_log_softmax(part) for part in np.split(outputs, ends, axis=1)]
        self._p = [np.exp(log_p) for log_p in self._log_p]
        self._entropies = [-np.einsum("ij,ij->i", *both) for both in zip(self._p, self._log_p, strict=True)]
        self._actions = actions
        self._rows = np.arange(len(outputs))
        self.log_probs = self._log_p[0][self._rows, actions[:, 0]]
        for i in range(1, len(counts)):
            self.log_probs = self.log_probs + self._log_p[i][self._rows, actions[:, i]]

    @property
    def entropy(self) -> Any:
        return sum(entropies.sum() for entropies in self._entropies) / len(self._rows)

    def backward(self, slopes: Floats, entropy_slope: float, into: Mapping[str, Floats]) -> Floats:
        share = entropy_slope / len(slopes)
        parts = []
        for i, p in enumerate(self._p):
            part = p * -slopes[:, None]
            part[self._rows, self._actions[:, i]] += slopes
            if share:
                part -= share * p * (self._log_p[i] + self._entropies[i][:, None])
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


class Normals:
    """Independent normals N(μ, σ²), with log σ free or the second half of the outputs. With x = (a − μ) / σ:

    ∂ log p / ∂μ = x / σ;   ∂ log p / ∂ log σ = x² − 1;   ∂H / ∂ log σ = 1
    """

    def __init__(self, outputs: Floats, actions: Floats, free_log_std: Floats | None) -> None:
        size = actions.shape[1]
        self._free = free_log_std is not None
        self._said = outputs[:, size:]
        self._log_std = np.clip(self._said, *LOG_STD_LIMITS) if free_log_std is None else free_log_std
        self._inverse_std = np.exp(-self._log_std)
        self._x = (actions - outputs[:, :size]) * self._inverse_std
        self._squares = self._x * self._x
        halves = np.full(size, -0.5, dtype=outputs.dtype)
        self.log_probs = self._squares @ halves - (self._log_std.sum(axis=-1) + _HALF_LOG_TWO_PI * size)

    @property
    def entropy(self) -> Any:
        return self._log_std.sum(axis=-1).mean() + (0.5 + _HALF_LOG_TWO_PI) * self._log_std.shape[-1]

    def backward(self, slopes: Floats, entropy_slope: float, into: Mapping[str, Floats]) -> Floats:
        by_mean: Floats = self._x * self._inverse_std * slopes[:, None]
        if self._free:
            np.add(slopes @ (self._squares - 1.0), entropy_slope, out=into["policy.log_std"])
            return by_mean
        low, high = LOG_STD_LIMITS
        inside = (self._said >= low) & (self._said <= high)
        by_log_std = ((self._squares - 1.0) * slopes[:, None] + entropy_slope / len(slopes)) * inside
        return np.concatenate([by_mean, by_log_std], axis=1)


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_p
