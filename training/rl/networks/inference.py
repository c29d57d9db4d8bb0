"""The policy in numpy, as actors run it: without torch, one small matrix product a layer.

`torch_network.py` beside it computes the same with gradients; a test compares both to 1e-5, log-probabilities included.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from training.engine.codec import BODY_LIMIT_BYTES, decode
from training.rl.networks import LOG_STD
from training.rl.networks.dense import Dense
from training.rl.networks.layer import published_layers

Floats = npt.NDArray[np.float32]
OBSERVATION_CLIP = np.float32(10.0)
LOG_STD_LIMITS = (-5.0, 2.0)
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


class NumpyPolicy:
    """One published version of the policy, ready to act, built from the learner's published bytes."""

    def __init__(self, weights: bytes, *, limit_bytes: int = BODY_LIMIT_BYTES) -> None:
        document = decode(weights, body_limit_bytes=limit_bytes)
        self.version: int = document["version"]
        self.action_counts: tuple[int, ...] = tuple(document["action_counts"])
        self.discrete = bool(self.action_counts)
        self.pictures: bool = document["pictures"]
        self.macs: int = document.get("macs", 0)
        relu = document["activation"] == "relu"
        layers = published_layers(document)
        self._computations = [
            kind.in_numpy([layer for _, layer in consecutive], relu=relu)
            for kind, consecutive in groupby(layers, lambda layer: layer[0])
        ]
        is_dense = not self.pictures and all(kind is Dense for kind, _ in layers)
        self.dense_macs = sum(layer.parameters[0].size for _, layer in layers) if is_dense else None
        """The multiplications for one observation; None unless all layers are dense."""
        self._mean: Floats | None = document.get("observation_mean")
        self._scale: Floats | None = document.get("observation_scale")
        self.outputs_size = len(layers[-1][1].parameters[-1])
        ends = np.cumsum(self.action_counts).tolist()
        self._parts = [slice(end - count, end) for end, count in zip(ends, self.action_counts, strict=True)]
        log_std: Floats | None = document.get(LOG_STD)
        self._free = None if log_std is None else (np.exp(log_std), float(log_std.sum()))

    def outputs(self, observations: npt.NDArray[Any]) -> Floats:
        """Return logits of discrete actions, or means (and deviations) of continuous ones, for [n, …] observations."""
        x: Any = observations if self.pictures else normalise(observations, self._mean, self._scale)
        for compute in self._computations:
            x = compute(x)
        y: Floats = x
        return y

    def draw_noise(self, rng: np.random.Generator, steps: int, environments: int) -> Floats:
        """Draw all the randomness of a fragment at once: Gumbel for discrete actions, normal for continuous ones."""
        if self.discrete:
            return rng.gumbel(size=(steps, environments, self.outputs_size)).astype(np.float32)
        size = self.outputs_size if self._free is not None else self.outputs_size // 2
        return rng.standard_normal((steps, environments, size), dtype=np.float32)

    def act(self, observations: npt.NDArray[Any], noise: Floats) -> tuple[npt.NDArray[Any], Floats]:
        """Return actions and the network's outputs. Continuous actions are not clipped here: the environment clips
        them.
        """
        outputs = self.outputs(observations)
        if self.discrete:
            return self._choose(outputs + noise), outputs
        if self._free is not None:
            return outputs + self._free[0] * noise, outputs
        size = noise.shape[1]
        log_std = np.clip(outputs[:, size:], *LOG_STD_LIMITS)
        return outputs[:, :size] + np.exp(log_std) * noise, outputs

    def log_probs(self, outputs: Floats, noise: Floats, actions: npt.NDArray[Any]) -> Floats:
        """Return the log-probabilities of what `act` returned, of one step or of many at once."""
        if self.discrete:
            flat = outputs.reshape(-1, self.outputs_size)
            chosen = actions.reshape(len(flat), len(self.action_counts))
            total: Floats = np.zeros(len(flat), dtype=np.float32)
            rows = np.arange(len(flat))
            for n, part in enumerate(self._parts):
                logits = flat[:, part]
                total += logits[rows, chosen[:, n]] - _log_sum(logits)
            return total.reshape(outputs.shape[:-1])
        squares = -0.5 * (noise * noise).sum(axis=-1)
        size = noise.shape[-1]
        if self._free is not None:
            total = squares - (self._free[1] + _HALF_LOG_TWO_PI * size)
        else:
            log_std = np.clip(outputs[..., size:], *LOG_STD_LIMITS)
            total = squares - log_std.sum(axis=-1) - _HALF_LOG_TWO_PI * size
        return total.astype(np.float32)

    def sample(self, observations: npt.NDArray[Any], noise: Floats) -> tuple[npt.NDArray[Any], Floats]:
        """Return actions and their log-probabilities."""
        actions, outputs = self.act(observations, noise)
        return actions, self.log_probs(outputs, noise, actions)

    def best(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the deterministic policy's actions: the likeliest discrete actions, or the mean."""
        outputs = self.outputs(observations)
        if self.discrete:
            return self._choose(outputs)
        return outputs if self._free is not None else outputs[:, : self.outputs_size // 2]

    def _choose(self, scores: Floats) -> npt.NDArray[Any]:
        """Return each action's choice with the highest score."""
        if len(self._parts) == 1:
            best: npt.NDArray[Any] = np.argmax(scores, axis=1)
            return best
        return np.stack([np.argmax(scores[:, part], axis=1) for part in self._parts], axis=1)


def normalise(observations: npt.NDArray[Any], mean: Floats | None, scale: Floats | None) -> Any:
    """Return observations normalised in float32, as both actors and learner compute it."""
    if mean is None or scale is None:
        return observations
    # Clipped by two ufuncs: np.clip costs several times as much on arrays this small.
    shifted = observations - mean
    shifted *= scale
    np.maximum(shifted, -OBSERVATION_CLIP, out=shifted)
    return np.minimum(shifted, OBSERVATION_CLIP, out=shifted)


def _log_sum(logits: Floats) -> Floats:
    top = logits.max(axis=1)
    total: Floats = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    return total
