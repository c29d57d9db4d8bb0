"""Policy heads in numpy: log-probabilities and entropies of the network's outputs, and the loss's gradient by them.

They compute what `training.rl.networks.distributions` computes with torch's gradients. A loss depends on the outputs
in two ways: by the log-probability of each sample's action (`slopes`, [n]) and by the mean entropy (`entropy_slope`,
one number). The divergence from an older policy is a third.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from training.rl.networks import Floats
from training.rl.networks.inference import LOG_STD_LIMITS
from training.rl.spaces import Spaces

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Head(Protocol):
    log_probs: Floats

    @property
    def entropy(self) -> Any:
        """The mean over the samples."""

    def divergence_from(self, older: Self) -> Any:
        """Return the mean of KL(older ‖ this)."""

    def backward(self, slopes: Floats, entropy_slope: float, into: Mapping[str, Floats]) -> Floats:
        """Return the loss's gradient by the outputs. A free log-deviation's gradient is written to `into`."""

    def backward_from(self, older: Self, weight: float, into: Mapping[str, Floats]) -> tuple[Any, Floats]:
        """Return the mean of KL(older ‖ this), and the gradient of `weight` times that by the outputs. A free
        log-deviation's gradient is added to the one in `into`.
        """


def head_of(
    outputs: Floats, actions: npt.NDArray[Any], parameters: Mapping[str, Floats], spaces: Spaces
) -> Head:
    if spaces.discrete:
        return Categoricals(outputs, actions.reshape(len(outputs), -1), spaces.action_counts)
    return Normals(outputs, actions, parameters.get("policy.log_std"))


class Categoricals:
    """Independent categorical choices, each a softmax over its part p of the outputs z.

    ∂ log p_a / ∂z = 1_a − p;   ∂H / ∂z = −p (log p + H);   ∂KL / ∂z = p − p_older
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
        return _joined(parts)

    def divergence_from(self, older: Self) -> Any:
        theirs = zip(older._p, older._log_p, self._log_p, strict=True)
        return sum(np.vdot(p, log_p - own) for p, log_p, own in theirs) / len(self._rows)

    def backward_from(self, older: Self, weight: float, into: Mapping[str, Floats]) -> tuple[Any, Floats]:
        n = len(self._rows)
        return self.divergence_from(older), _joined(
            [np.multiply(p - q, weight / n) for p, q in zip(self._p, older._p, strict=True)]
        )


class Normals:
    """Independent normals N(μ, σ²). log σ is a free parameter or the second half of the outputs. With x = (a − μ) /
    σ:

        ∂ log p / ∂μ = x / σ;   ∂ log p / ∂ log σ = x² − 1;   ∂H / ∂ log σ = 1

    and with y = (μ_older − μ) / σ and r = (σ_older / σ)²: KL = ½ (r + y² − 1 − log r)

        ∂KL / ∂μ = −y / σ;   ∂KL / ∂ log σ = 1 − r − y²
    """

    def __init__(self, outputs: Floats, actions: Floats, free_log_std: Floats | None) -> None:
        size = actions.shape[1]
        self._free = free_log_std is not None
        self._mean, self._said = outputs[:, :size], outputs[:, size:]
        self._log_std = np.clip(self._said, *LOG_STD_LIMITS) if free_log_std is None else free_log_std
        self._inverse_std = np.exp(-self._log_std)
        self._x = (actions - self._mean) * self._inverse_std
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
        by_log_std = (self._squares - 1.0) * slopes[:, None] + entropy_slope / len(slopes)
        return np.concatenate([by_mean, by_log_std * self._within_limits()], axis=1)

    def divergence_from(self, older: Self) -> Any:
        return self._compare(older)[0]

    def _compare(self, older: Self) -> tuple[Any, Floats, Floats, Floats]:
        """Return the divergence, r, y and y²."""
        wider = 2.0 * (older._log_std - self._log_std)
        ratios = np.exp(wider)
        shifts = (older._mean - self._mean) * self._inverse_std
        squares = shifts * shifts
        return 0.5 * (ratios + squares - 1.0 - wider).sum(axis=1).mean(), ratios, shifts, squares

    def backward_from(self, older: Self, weight: float, into: Mapping[str, Floats]) -> tuple[Any, Floats]:
        share = weight / len(self._mean)
        divergence, ratios, shifts, squares = self._compare(older)
        by_mean: Floats = shifts * self._inverse_std * -share
        by_log_std = (1.0 - ratios - squares) * share
        if self._free:
            into["policy.log_std"][...] += by_log_std.sum(axis=0)
            return divergence, by_mean
        return divergence, np.concatenate([by_mean, by_log_std * self._within_limits()], axis=1)

    def _within_limits(self) -> npt.NDArray[np.bool_]:
        """Where the log-deviation is inside its limits, so that its gradient is not zero."""
        low, high = LOG_STD_LIMITS
        return (self._said >= low) & (self._said <= high)


def _joined(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_p
