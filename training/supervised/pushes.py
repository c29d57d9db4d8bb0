"""What a function pushes: the sum of the gradients of its steps, and what its filter carries over to its next push.

Each array travels whole, or as places and values where that is shorter. Equal pushes are equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from training.data.manifest import DataShape
from training.engine.codec import CodecError, Document, decode, encode
from training.supervised.models.model import Model, Parameters

Shapes = Mapping[str, tuple[int, ...]]
_PLACE_BYTES, _VALUE_BYTES = 4, 4
NUMBER_LIMIT = 1e15
"""Descent with larger numbers has diverged, and their squares would leave float32."""
_FIGURES = ("version", "slice_no", "rows", "steps", "loss", "diverged")
_HEADER_BYTES, _HEADER_BYTES_AN_ARRAY = 260, 120


class BadPush(ValueError):
    """The bytes are not a push of such parameters. The message says what is wrong."""


@lru_cache(maxsize=16)
def shapes_of(model: Model, shape: DataShape) -> Shapes:
    """Return the shapes of a model's parameters by name."""
    return model.shapes(shape)


def most_bytes(shapes: Shapes) -> int:
    """Return the most bytes that a push of such parameters can have."""
    numbers = sum(int(np.prod(shape)) for shape in shapes.values())
    return _VALUE_BYTES * numbers + _HEADER_BYTES + _HEADER_BYTES_AN_ARRAY * len(shapes)


@dataclass(frozen=True, eq=False)
class Push:
    """The gradient is the sum over `steps` local steps from `version` on, by `rows` rows; `loss` is the mean of theirs.

    `diverged`: the loss or the gradient was no number, or beyond all sense, so there is no gradient.
    """

    version: int
    slice_no: int
    rows: int
    steps: int
    loss: float
    gradient: Parameters
    diverged: bool = False

    def encode(self) -> bytes:
        figures = {name: getattr(self, name) for name in _FIGURES}
        return encode({**figures, **_packed(self.gradient)})

    @staticmethod
    def decode(data: bytes, shapes: Shapes) -> Push:
        """Return the push in `data`, for parameters of these shapes. Raises BadPush unless it is one, byte for byte."""
        document = _document(data, most_bytes(shapes))
        figures = {name: document.pop(name, None) for name in _FIGURES}
        for name, kind in (("loss", float), ("diverged", bool)):
            if type(figures[name]) is not kind:
                raise BadPush(f"{name} is {figures[name]!r:.40}")
        for name in ("version", "slice_no", "rows", "steps"):
            if type(figures[name]) is not int or figures[name] < 0:
                raise BadPush(f"{name} is {figures[name]!r:.40}")
        if not abs(figures["loss"]) <= NUMBER_LIMIT:
            raise BadPush(f"the loss is not a finite number of at most {NUMBER_LIMIT:g}")
        push = Push(**figures, gradient=_unpacked(document, shapes))
        if push.encode() != data:
            raise BadPush("it is not packed as pushes are")
        return push


def is_sound(array: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are finite and not beyond all sense."""
    return bool((np.abs(array) <= NUMBER_LIMIT).all())


def encode_carried(carried: Parameters) -> bytes:
    """Return what a filter held back, as bytes."""
    return encode(_packed(carried))


def decode_carried(data: bytes, shapes: Shapes) -> Parameters:
    """Return what a filter held back. Raises BadPush unless it is that, byte for byte."""
    carried = _unpacked(_document(data, most_bytes(shapes)), shapes)
    if encode_carried(carried) != data:
        raise BadPush("what is carried over is not packed as it should be")
    return carried


def filtered(
    gradient: Parameters, parameters: Parameters, *, learning_rate: float, significance: float
) -> tuple[Parameters, Parameters]:
    """Return the part of a gradient that travels, and the part that is carried over.

    A coordinate travels if its step is more than `significance` times the parameter itself (Hsieh et al. 2017).
    """
    sent, carried = {}, {}
    for name, slope in gradient.items():
        significant = learning_rate * np.abs(slope) > significance * np.abs(parameters[name])
        sent[name] = np.where(significant, slope, slope.dtype.type(0.0))
        carried[name] = np.where(significant, slope.dtype.type(0.0), slope)
    return sent, carried


def _packed(arrays: Parameters) -> Document:
    document: Document = {}
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array, np.float32).reshape(-1)
        places = np.flatnonzero(flat)
        if (_PLACE_BYTES + _VALUE_BYTES) * len(places) < _VALUE_BYTES * flat.size:
            document[f"at:{name}"] = places.astype(np.int32)
            document[f"of:{name}"] = flat[places]
        else:
            document[f"all:{name}"] = flat
    return document


def _unpacked(document: Document, shapes: Shapes) -> Parameters:
    return {name: _array(document, name, shape) for name, shape in shapes.items()}


def _array(document: Document, name: str, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape))
    if f"all:{name}" in document:
        flat = _vector(document, f"all:{name}", "<f4")
        if len(flat) != size:
            raise BadPush(f"{name} has {len(flat)} numbers, not {size}")
        return flat.reshape(shape)
    places, values = _vector(document, f"at:{name}", "<i4"), _vector(document, f"of:{name}", "<f4")
    if len(places) != len(values):
        raise BadPush(f"{name} has {len(places)} places and {len(values)} values")
    if len(places) and (places[0] < 0 or places[-1] >= size or (np.diff(places) <= 0).any()):
        raise BadPush(f"the places of {name} are not in order, or not places of it")
    flat = np.zeros(size, np.float32)
    flat[places] = values
    return flat.reshape(shape)


def _vector(document: Document, name: str, dtype: str) -> Any:
    array = document.get(name)
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.str != dtype:
        raise BadPush(f"{name} is missing, or no list of numbers of type {dtype}")
    if dtype == "<f4" and not is_sound(array):
        raise BadPush(f"{name} has numbers that are not finite, or above {NUMBER_LIMIT:g}")
    return array


def _document(data: bytes, limit_bytes: int) -> Document:
    try:
        return decode(data, body_limit_bytes=limit_bytes)
    except (CodecError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise BadPush(f"it cannot be read: {error}") from None
