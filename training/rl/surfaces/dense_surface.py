"""The surface of a fully connected policy, with products by its Hessian in closed form (Pearlmutter 1994).

Let R be the derivative of a quantity when θ moves along v. R applied to each line of the forward and the backward
pass gives R(∇J) = ∇²J · v, exactly, at about twice the cost of a gradient. What does not depend on v (the layers'
outputs and the slopes of the backward pass) is computed once for a point and kept for all its products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from training.rl.algorithms.closed_form import compute_in_one_thread
from training.rl.algorithms.dense import dense_layers
from training.rl.networks import Floats, Network, Parameters
from training.rl.networks.inference import LOG_STD_LIMITS
from training.rl.spaces import Spaces
from training.rl.surfaces.update_samples import ObjectiveKind, UpdateSamples, policy_part, slopes_of


class DenseSurface:
    """A `SurfacePoint` for MLPs, in the precision of the given parameters."""

    def __init__(
        self,
        network: Network,
        spaces: Spaces,
        parameters: Parameters,
        update_samples: UpdateSamples,
        objective: ObjectiveKind,
        clip: float | None,
    ) -> None:
        compute_in_one_thread()
        self._parameters = policy_part(parameters)
        self._dtype = next(iter(self._parameters.values())).dtype
        self.size = sum(array.size for array in self._parameters.values())
        self._layers = dense_layers(network.layout(spaces).actor)
        self._relu = network.activation == "relu"
        self._seen = self._forward(update_samples.observations.astype(self._dtype, copy=False))
        head: type[_ChoiceHead | _NormalHead] = _ChoiceHead if spaces.discrete else _NormalHead
        self._head = head(self._seen[-1], update_samples.actions, self._parameters, spaces)
        first, second = slopes_of(self._head.log_probs, update_samples, objective, clip)
        self._second: Floats = second.astype(self._dtype, copy=False)
        self._head.slope_by(first.astype(self._dtype, copy=False))
        # Gradients by each layer's output before its activation; and by its input, where that is another layer's
        # output.
        self._slopes, self._back = self._backward(self._head.slopes)

    def gradient(self) -> Floats:
        parts: dict[str, Floats] = {}
        for layer, slopes, seen in zip(self._layers, self._slopes, self._seen, strict=False):
            parts[layer.weight] = slopes.T @ seen
            parts[layer.bias] = slopes.sum(axis=0)
        if self._head.free is not None:
            parts["policy.log_std"] = self._head.free
        return self._joined(parts)

    def product(self, vector: npt.NDArray[np.float64]) -> Floats:
        along = self._named(vector)
        moved = self._forward_derivative(along)
        slopes, free = self._head.derivative(moved[-1], along.get("policy.log_std"), self._second)
        parts: dict[str, Floats] = {} if free is None else {"policy.log_std": free}
        for i in range(len(self._layers) - 1, -1, -1):
            layer, seen = self._layers[i], self._seen[i]
            if layer.activated:
                # Slopes before the activation are f'(z) · slopes after it; the second part is R f'(z).
                slopes = slopes * self._steepness(i + 1)
                if not self._relu:
                    slopes -= 2.0 * self._seen[i + 1] * moved[i + 1] * self._back[i + 1]
            parts[layer.weight] = slopes.T @ seen
            if i:
                parts[layer.weight] += self._slopes[i].T @ moved[i]
            parts[layer.bias] = slopes.sum(axis=0)
            if i:
                slopes = slopes @ self._parameters[layer.weight] + self._slopes[i] @ along[layer.weight]
        return self._joined(parts)

    def _forward(self, x: Floats) -> list[Floats]:
        """Return the input and each layer's output."""
        seen = [x]
        for layer in self._layers:
            x = x @ self._parameters[layer.weight].T + self._parameters[layer.bias]
            if layer.activated:
                x = np.maximum(x, 0.0) if self._relu else np.tanh(x)
            seen.append(x)
        return seen

    def _forward_derivative(self, along: Parameters) -> list[Any]:
        """Return R of the input and of each layer's output; the observations do not move."""
        moved: list[Any] = [None]
        for i, layer in enumerate(self._layers):
            x = self._seen[i] @ along[layer.weight].T + along[layer.bias]
            if i:
                x += moved[i] @ self._parameters[layer.weight].T
            moved.append(x * self._steepness(i + 1) if layer.activated else x)
        return moved

    def _backward(self, slopes: Floats) -> tuple[list[Floats], list[Any]]:
        before: list[Floats] = [slopes] * len(self._layers)
        after: list[Any] = [None] * (len(self._layers) + 1)
        for i in range(len(self._layers) - 1, -1, -1):
            after[i + 1] = slopes
            if self._layers[i].activated:
                slopes = slopes * self._steepness(i + 1)
            before[i] = slopes
            if i:
                slopes = slopes @ self._parameters[self._layers[i].weight]
        return before, after

    def _steepness(self, i: int) -> Any:
        """Return the activation's derivative, from the layer's output."""
        return (self._seen[i] > 0.0) if self._relu else 1.0 - self._seen[i] * self._seen[i]

    def _named(self, vector: npt.NDArray[np.float64]) -> Parameters:
        moved: Floats = vector.astype(self._dtype, copy=False)
        named: Parameters = {}
        begin = 0
        for name, array in self._parameters.items():
            named[name] = moved[begin : begin + array.size].reshape(array.shape)
            begin += array.size
        return named

    def _joined(self, parts: Parameters) -> Floats:
        return np.concatenate([parts[name].ravel() for name in self._parameters])


class _ChoiceHead:
    """Independent softmax choices: slopes w (1_a − p) by the outputs z, for slopes w by log π."""

    free: Floats | None = None

    def __init__(
        self, outputs: Floats, actions: npt.NDArray[Any], parameters: Parameters, spaces: Spaces
    ) -> None:
        counts = spaces.action_counts
        ends = np.cumsum(counts)[:-1]
        self._parts = [slice(*pair) for pair in zip((0, *ends), (*ends, sum(counts)), strict=True)]
        chosen = actions.reshape(len(outputs), -1)
        self._p, self._hit = np.empty_like(outputs), np.zeros_like(outputs)
        self.log_probs: Floats = np.zeros(len(outputs), dtype=outputs.dtype)
        rows = np.arange(len(outputs))
        for i, part in enumerate(self._parts):
            z = outputs[:, part] - outputs[:, part].max(axis=1, keepdims=True)
            log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
            self._p[:, part] = np.exp(log_p)
            self._hit[:, part][rows, chosen[:, i]] = 1.0
            self.log_probs += log_p[rows, chosen[:, i]]

    def slope_by(self, weights: Floats) -> None:
        self._weights = weights[:, None]
        self.slopes: Floats = self._weights * (self._hit - self._p)

    def derivative(
        self, outputs: Floats, free: Floats | None, second: Floats
    ) -> tuple[Floats, Floats | None]:
        """Return R of the slopes, given R of the outputs."""
        of_log_probs = ((self._hit - self._p) * outputs).sum(axis=1)
        of_p = np.empty_like(outputs)
        for part in self._parts:
            p, z = self._p[:, part], outputs[:, part]
            of_p[:, part] = p * (z - (p * z).sum(axis=1, keepdims=True))
        return (second * of_log_probs)[:, None] * (self._hit - self._p) - self._weights * of_p, None


class _NormalHead:
    """Independent normals. With x = (a − μ) / σ: slopes w x / σ by μ and w (x² − 1) by log σ."""

    def __init__(
        self, outputs: Floats, actions: npt.NDArray[Any], parameters: Parameters, spaces: Spaces
    ) -> None:
        size = len(spaces.action_low)
        self._size = size
        self._is_free = "policy.log_std" in parameters
        said = parameters["policy.log_std"] if self._is_free else outputs[:, size:]
        low, high = LOG_STD_LIMITS
        self._held: Any = True if self._is_free else (said >= low) & (said <= high)
        log_std = said if self._is_free else np.clip(said, low, high)
        self._inverse = np.exp(-log_std)
        self._x = (actions.astype(outputs.dtype, copy=False) - outputs[:, :size]) * self._inverse
        self.log_probs: Floats = (
            -0.5 * (self._x * self._x).sum(axis=1)
            - np.broadcast_to(log_std, self._x.shape).sum(axis=1)
            - 0.5 * size * math.log(2.0 * math.pi)
        )

    def slope_by(self, weights: Floats) -> None:
        self._weights = weights[:, None]
        by_mean = self._weights * self._x * self._inverse
        by_log_std: Any = self._weights * (self._x * self._x - 1.0)
        self.free: Floats | None = by_log_std.sum(axis=0) if self._is_free else None
        self.slopes: Floats = by_mean if self._is_free else self._both(by_mean, by_log_std)

    def derivative(
        self, outputs: Floats, free: Floats | None, second: Floats
    ) -> tuple[Floats, Floats | None]:
        """Return R of the slopes, given R of the outputs and of a free log σ."""
        of_log_std: Any = free if self._is_free else outputs[:, self._size :] * self._held
        of_x = -outputs[:, : self._size] * self._inverse - self._x * of_log_std
        of_log_probs = (-self._x * of_x - of_log_std).sum(axis=1)
        of_weights = (second * of_log_probs)[:, None]
        x, inverse, weights = self._x, self._inverse, self._weights
        squares: Floats = x * x
        by_mean = of_weights * x * inverse + weights * inverse * (of_x - x * of_log_std)
        by_log_std: Any = of_weights * (squares - 1.0) + 2.0 * weights * x * of_x
        if self._is_free:
            return by_mean, by_log_std.sum(axis=0)
        return self._both(by_mean, by_log_std), None

    def _both(self, by_mean: Floats, by_log_std: Floats) -> Floats:
        return np.concatenate([by_mean, by_log_std * self._held], axis=1)
