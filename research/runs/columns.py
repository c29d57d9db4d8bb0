"""JSON objects as columns, which compress to a fraction of their text, and back: equal in every key, value and type.

An object is taken apart into its leaves, each with its path of keys. Objects with the same leaves have one *shape*. A
column holds the values of one path and type, over all objects whose shape has it:

- whole numbers: themselves or their differences, as narrow as the largest allows;
- floats: all eight bytes, or a whole number over a power of ten and how many representable floats lie between;
- strings: their numbers apart, "r12-s3" is ("r", "-s", "") with 12 and 3; and each different rest once;
- lists of these: how long each is, and the values one after another.

What is null, true, false, empty or a mixed list belongs to the shape. Bytes of the same weight lie side by side.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

Json = dict[str, Any]
Ints = npt.NDArray[np.int64]
Leaf = tuple[tuple[str, ...], str]
"""A path and the type of what is there; a constant's type is `=` and its JSON."""

_TYPES = {int: "int", float: "float", str: "str"}
_LARGEST_INT = 2**60
_EXACT_FLOAT = 2.0**53
_MOST_STEPS = 2**20
_DECIMALS = (0, 9, 12)
_NUMBER = re.compile(r"([0-9]+)")
# Longer strings are texts of their own, or weights.
_LONGEST_NUMBERED = 200


def to_columns(rows: Sequence[Json]) -> Json:
    """The objects as plain values and bytes."""
    shapes: dict[tuple[Leaf, ...], int] = {}
    columns: dict[Leaf, list[Any]] = {}
    order = []
    for row in rows:
        leaves = list(_leaves(row))
        order.append(shapes.setdefault(tuple(leaf for leaf, _ in leaves), len(shapes)))
        for leaf, value in leaves:
            if not leaf[1].startswith("="):
                columns.setdefault(leaf, []).append(value)
    return {
        "shapes": [[[*path, kind] for path, kind in shape] for shape in shapes],
        "order": _pack_ints(order),
        "columns": [[[*path, kind], _pack(kind, values)] for (path, kind), values in columns.items()],
    }


def from_columns(document: Json) -> list[Json]:
    """The objects again, in their order."""
    columns = {_leaf(leaf): iter(_unpack(leaf[-1], packed)) for leaf, packed in document["columns"]}
    shapes = [[(leaf, columns.get(leaf)) for leaf in map(_leaf, shape)] for shape in document["shapes"]]
    rows = []
    for number in _unpack_ints(document["order"]):
        row: Json = {}
        for (path, kind), values in shapes[number]:
            place = row
            for key in path[:-1]:
                place = place.setdefault(key, {})
            place[path[-1]] = json.loads(kind[1:]) if values is None else next(values)
        rows.append(row)
    return rows


def _leaf(written: Sequence[str]) -> Leaf:
    return tuple(written[:-1]), written[-1]


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Leaf, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif (kind := _kind(value)) is not None:
        yield (path, kind), value
    elif isinstance(value, list) and len(kinds := {_kind(one) for one in value}) == 1 and None not in kinds:
        yield (path, f"{kinds.pop()}s"), value
    else:
        yield (path, "=" + json.dumps(value)), value


def _kind(value: Any) -> str | None:
    kind = _TYPES.get(type(value))
    return None if kind == "int" and abs(value) > _LARGEST_INT else kind


def _pack(kind: str, values: list[Any]) -> Any:
    if kind.endswith("s"):
        lengths = [len(value) for value in values]
        return [_pack_ints(lengths), _pack(kind[:-1], [one for several in values for one in several])]
    return _WAYS[kind][0](values)


def _unpack(kind: str, packed: Any) -> list[Any]:
    if not kind.endswith("s"):
        return _WAYS[kind][1](packed)
    values = iter(_unpack(kind[:-1], packed[1]))
    return [[next(values) for _ in range(length)] for length in _unpack_ints(packed[0])]


def _pack_ints(values: Sequence[int] | Ints) -> list[Any]:
    """The width in bytes, negative for differences; and the bytes. Signs are folded in: 0, −1, 1, −2 are 0, 1, 2, 3."""
    array = np.array(values, dtype=np.int64)
    return min(_folded(array, 1), _folded(np.diff(array, prepend=0), -1), key=lambda one: _size(one[1]))


def _folded(array: Ints, sign: int) -> list[Any]:
    folded = ((array << 1) ^ (array >> 63)).astype(np.uint64)
    largest = int(folded.max(initial=0))
    width = next(bytes_ for bytes_ in (1, 2, 4, 8) if largest < 256**bytes_)
    return [sign * width, _planes(folded.astype(f"<u{width}"))]


def _unpack_ints(packed: list[Any]) -> list[int]:
    values: list[int] = _ints(packed).tolist()
    return values


def _ints(packed: list[Any]) -> Ints:
    width, data = packed
    folded = _from_planes(data, f"<u{abs(width)}").astype(np.uint64)
    array = (folded >> 1).astype(np.int64) ^ -(folded & 1).astype(np.int64)
    return array if width > 0 else np.cumsum(array)


def _pack_floats(values: Sequence[float]) -> list[Any]:
    """The bytes alone; or the decimals, the whole numbers, and how many floats away the value is from each."""
    array = np.array(values, dtype="<f8")
    ways: list[list[Any]] = [[_planes(array)]]
    for decimals in _DECIMALS:
        with np.errstate(over="ignore"):
            scaled = np.rint(array * 10.0**decimals)
        if np.isfinite(scaled).all() and np.abs(scaled).max(initial=0) < _EXACT_FLOAT:
            whole = scaled.astype(np.int64)
            steps = array.view("<i8") - (whole / 10.0**decimals).view("<i8")
            # −0.0 is 2^63 away from 0.0, which has no absolute value here.
            if ((steps > -_MOST_STEPS) & (steps < _MOST_STEPS)).all():
                ways.append([decimals, _pack_ints(whole), _pack_ints(steps)])
    return min(ways, key=_size_of)


def _unpack_floats(packed: list[Any]) -> list[float]:
    if len(packed) == 1:
        array = _from_planes(packed[0], "<f8")
    else:
        decimals, whole, steps = packed
        near = (_ints(whole) / 10.0**decimals).view("<i8")
        array = (near + _ints(steps)).view("<f8")
    values: list[float] = array.tolist()
    return values


def _pack_strings(values: Sequence[str]) -> list[Any]:
    """What is beside the numbers, once each; which of these; and the numbers, by it and their place in it."""
    beside: dict[tuple[str, ...], int] = {}
    order: list[int] = []
    numbers: dict[tuple[int, int], list[int]] = {}
    for value in values:
        pieces = _NUMBER.split(value) if len(value) <= _LONGEST_NUMBERED else [value]
        if any(piece != str(int(piece)) or len(piece) > 15 for piece in pieces[1::2]):
            pieces = [value]
        number = beside.setdefault(tuple(pieces[::2]), len(beside))
        order.append(number)
        for place, piece in enumerate(pieces[1::2]):
            numbers.setdefault((number, place), []).append(int(piece))
    apart = [_pack_ints(numbers[key]) for key in sorted(numbers)]
    return [[list(one) for one in beside], _pack_ints(order), apart]


def _unpack_strings(packed: list[Any]) -> list[str]:
    beside, order, apart = packed
    numbers = iter(apart)
    holes = [[iter(_unpack_ints(next(numbers))) for _ in pieces[1:]] for pieces in beside]
    strings = []
    for number in _unpack_ints(order):
        text, *rest = beside[number]
        for hole, piece in zip(holes[number], rest, strict=True):
            text += f"{next(hole)}{piece}"
        strings.append(text)
    return strings


def _planes(array: npt.NDArray[Any]) -> bytes:
    return array.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()


def _from_planes(data: bytes, dtype: str) -> npt.NDArray[Any]:
    width = np.dtype(dtype).itemsize
    return np.frombuffer(data, np.uint8).reshape(width, -1).T.copy().view(dtype).reshape(-1)


def _size(data: bytes) -> int:
    """About what the bytes take when they are compressed."""
    return len(zstandard.ZstdCompressor(level=3).compress(data))


def _size_of(way: list[Any]) -> int:
    return sum(
        _size(part if isinstance(part, bytes) else part[1]) for part in way if not isinstance(part, int)
    )


_WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Any]]]] = {
    "int": (_pack_ints, _unpack_ints),
    "float": (_pack_floats, _unpack_floats),
    "str": (_pack_strings, _unpack_strings),
}
