"""What a kind of layer knows: its parameters, its multiplications, and how numpy, torch and ONNX compute it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

    from training.artifacts.onnx_graph import OnnxGraph

Floats = npt.NDArray[np.float32]
Parameters = dict[str, Floats]
Compute = Callable[[npt.NDArray[Any]], Floats]
LOG_STD = "policy.log_std"
"""The name of a free log-deviation, which the network does not say."""


class PublishedLayer(NamedTuple):
    """A layer as an actor gets it: its parameters, its facts, and whether its activation follows."""

    parameters: list[Floats]
    facts: Any
    activated: bool


@dataclass(frozen=True)
class Layer(ABC):
    """A layer of a network for samples of `input_shape`: numbers, or [channel, row, column] of a square picture.

    Methods that compute get the layer's parameters in the order of `parts`, and leave its activation out.
    """

    parts: ClassVar[tuple[str, ...]] = ("weight", "bias")
    """The names of its parameters."""
    kind: ClassVar[str | None]
    """Its name among the layers that are published to actors."""
    kinds: ClassVar[dict[str | None, type[Layer]]] = {}

    input_shape: tuple[int, ...]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def output_shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def weight_shape(self) -> tuple[int, ...]: ...

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of its parameters."""
        return self.weight_shape, self.weight_shape[:1]

    @property
    @abstractmethod
    def macs(self) -> int:
        """The multiplications for one sample, without bias and activation."""

    @property
    def facts(self) -> Any:
        """What `in_numpy` needs beside the parameters, as a document holds it."""
        return None

    @property
    def published(self) -> list[Any]:
        """Its kind and facts among the layers that are published to actors."""
        return [self.kind, self.facts]

    def initial_parameters(
        self, rng: np.random.Generator, gain: float, *, orthogonal: bool
    ) -> tuple[Floats, ...]:
        """Return orthogonal or uniform weights, and zero biases."""
        weight = initial_weights(rng, self.weight_shape, gain, orthogonal=orthogonal)
        return weight, np.zeros(len(weight), dtype=np.float32)

    @classmethod
    @abstractmethod
    def in_numpy(cls, layers: Sequence[PublishedLayer], *, relu: bool) -> Compute:
        """Return what computes consecutive layers of this kind, activations included, for [n, …] samples."""

    @abstractmethod
    def in_torch(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor: ...

    @abstractmethod
    def in_onnx(self, graph: OnnxGraph, x: str, *parameters: str) -> str:
        """Add the nodes of this layer. Return the name of their output."""


class NamedLayer(NamedTuple):
    """A layer of a network: its parameters' common name, and whether its activation follows."""

    name: str
    layer: Layer
    activated: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(f"{self.name}.{part}" for part in self.layer.parts)


@dataclass(frozen=True)
class Towers:
    """The layers of a network: a trunk that policy and value share (it may be empty), then the layers of each."""

    trunk: tuple[NamedLayer, ...]
    policy: tuple[NamedLayer, ...]
    value: tuple[NamedLayer, ...]

    @staticmethod
    def of(trunk: Sequence[Layer], policy: Sequence[Layer], value: Sequence[Layer]) -> Towers:
        """Return these layers with their names. Only the last of the policy and of the value have no activation."""
        return Towers(
            tuple(NamedLayer(f"trunk.{i}", layer, True) for i, layer in enumerate(trunk)),
            tuple(NamedLayer(f"policy.{i}", layer, i < len(policy) - 1) for i, layer in enumerate(policy)),
            tuple(NamedLayer(f"value.{i}", layer, i < len(value) - 1) for i, layer in enumerate(value)),
        )

    @property
    def actor(self) -> tuple[NamedLayer, ...]:
        """The layers that acting needs."""
        return (*self.trunk, *self.policy)

    @property
    def learner(self) -> tuple[NamedLayer, ...]:
        return (*self.actor, *self.value)


def initial_weights(
    rng: np.random.Generator, shape: tuple[int, ...], gain: float, *, orthogonal: bool
) -> Floats:
    rows, columns = shape[0], prod(shape[1:])
    if not orthogonal:
        # Torch's own default, which Stable-Baselines3's tuned MuJoCo recipes use.
        bound = 1.0 / np.sqrt(columns)
        return rng.uniform(-bound, bound, shape).astype(np.float32)
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q *= np.sign(np.diag(r))
    return np.ascontiguousarray(gain * (q if rows >= columns else q.T), dtype=np.float32).reshape(shape)


def published_layers(document: Mapping[str, Any]) -> list[tuple[type[Layer], PublishedLayer]]:
    """Return the layers of a published policy, with their kinds. Only the last has no activation."""
    entries = document["layers"]
    return [
        (kind, PublishedLayer([document[part] for part in parts], facts, at < len(entries) - 1))
        for at, (kind, parts, facts) in enumerate(map(_read, entries))
    ]


def published_names(document: Mapping[str, Any]) -> list[str]:
    """Return the names of a published policy's parameters."""
    names = [name for entry in document["layers"] for name in _read(entry)[1]]
    return [*names, LOG_STD] if LOG_STD in document else names


def _read(entry: list[Any]) -> tuple[type[Layer], list[str], Any]:
    """Return a published layer's kind, the names of its parameters, and its facts."""
    name, kind, facts = entry
    if isinstance(kind, list):
        # A convolution is published by its facts alone, without the name of its kind.
        kind, facts = "convolution", kind
    layer = Layer.kinds[kind]
    return layer, [f"{name}.{part}" for part in layer.parts], facts
