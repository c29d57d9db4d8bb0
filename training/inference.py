"""The policy in numpy, as actors run it: no torch, one small matrix product a layer.

Its twin with gradients is `training.networks`; a test holds the two equal to 1e-5, log-probabilities included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.codec import decode

Floats = npt.NDArray[np.float32]
OBSERVATION_CLIP = 10.0
LOG_TWO_PI = float(np.log(2.0 * np.pi))


class NumpyPolicy:
    """One published version of the policy, ready to act. Built from the bytes that the learner published."""

    def __init__(self, weights: bytes) -> None:
        document = decode(weights)
        self.version: int = document["version"]
        self.discrete: bool = document["discrete"]
        self._relu: bool = document["activation"] == "relu"
        self._layers: list[tuple[Floats, Floats]] = [
            (np.ascontiguousarray(document[f"policy.{i}.weight"].T), document[f"policy.{i}.bias"])
            for i in range(document["layers"])
        ]
        self._mean: Floats | None = document.get("observation_mean")
        self._scale: Floats | None = document.get("observation_scale")
        if not self.discrete:
            log_std: Floats = document["policy.log_std"]
            self._std: Floats = np.exp(log_std)
            self._log_normaliser = float(log_std.sum()) + 0.5 * LOG_TWO_PI * len(log_std)

    def outputs(self, observations: Floats) -> Floats:
        """Logits of discrete actions, or means of continuous ones, for [n, observation_size]."""
        x = normalised(observations, self._mean, self._scale)
        last = len(self._layers) - 1
        for i, (weight, bias) in enumerate(self._layers):
            x = x @ weight
            x += bias
            if i < last:
                x = np.maximum(x, 0.0, out=x) if self._relu else np.tanh(x, out=x)
        return x

    def draw_noise(self, rng: np.random.Generator, steps: int, environments: int) -> Floats:
        """All the randomness of a fragment at once: Gumbel for discrete actions, normal for continuous ones."""
        size = len(self._layers[-1][1])
        if self.discrete:
            return rng.gumbel(size=(steps, environments, size)).astype(np.float32)
        return rng.standard_normal((steps, environments, size), dtype=np.float32)

    def sample(self, observations: Floats, noise: Floats) -> tuple[npt.NDArray[Any], Floats]:
        """Actions and their log-probabilities. Continuous actions are not clipped here: the environment does."""
        outputs = self.outputs(observations)
        if self.discrete:
            actions = np.argmax(outputs + noise, axis=1)
            top = outputs.max(axis=1)
            log_sum = top + np.log(np.exp(outputs - top[:, None]).sum(axis=1))
            return actions, outputs[np.arange(len(actions)), actions] - log_sum
        log_probs = (-0.5 * (noise * noise).sum(axis=1) - self._log_normaliser).astype(np.float32)
        return outputs + self._std * noise, log_probs

    def best(self, observations: Floats) -> npt.NDArray[Any]:
        """The deterministic policy: the likeliest discrete action, or the mean."""
        outputs = self.outputs(observations)
        return outputs.argmax(axis=1) if self.discrete else outputs


def normalised(observations: Floats, mean: Floats | None, scale: Floats | None) -> Floats:
    """Observations as the networks see them, in float32 on both sides of the wire."""
    if mean is None or scale is None:
        return observations
    # Clipped by two ufuncs: np.clip costs several times as much on arrays this small.
    shifted = (observations - mean) * scale
    clipped: Floats = np.minimum(np.maximum(shifted, -OBSERVATION_CLIP), OBSERVATION_CLIP)
    return clipped
