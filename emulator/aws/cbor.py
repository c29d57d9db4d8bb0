"""CBOR, as far as the SDK's newer protocol needs it: maps, lists, text, whole numbers, booleans and null."""

from __future__ import annotations

from typing import Any

_INT, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _SIMPLE = 0, 1, 2, 3, 4, 5, 7
_CONSTANTS = {20: False, 21: True, 22: None}
_ENDLESS = 31


def dumps(value: Any) -> bytes:
    match value:
        case None:
            return b"\xf6"
        case bool():
            return b"\xf5" if value else b"\xf4"
        case int():
            return _head(_INT, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
        case bytes():
            return _head(_BYTES, len(value)) + value
        case str():
            data = value.encode()
            return _head(_TEXT, len(data)) + data
        case list():
            return _head(_LIST, len(value)) + b"".join(map(dumps, value))
        case dict():
            pairs = b"".join(dumps(key) + dumps(inner) for key, inner in value.items())
            return _head(_MAP, len(value)) + pairs
        case _:
            raise TypeError(f"{type(value).__name__} has no form here")


def loads(data: bytes) -> Any:
    value, end = _read(data, 0)
    if end != len(data):
        raise ValueError("more than one value")
    return value


def _head(kind: int, number: int) -> bytes:
    if number < 24:
        return bytes([kind << 5 | number])
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([kind << 5 | code]) + number.to_bytes(size, "big")
    raise ValueError("too large a number")


def _read(data: bytes, at: int) -> tuple[Any, int]:
    kind, low = data[at] >> 5, data[at] & 31
    at += 1
    if kind == _SIMPLE:
        return _CONSTANTS[low], at
    if low == _ENDLESS:
        return _endless(kind, data, at)
    if low < 24:
        number = low
    else:
        size = 1 << (low - 24)
        number, at = int.from_bytes(data[at : at + size], "big"), at + size
    if kind in (_INT, _NEGATIVE):
        return (number if kind == _INT else -1 - number), at
    if kind in (_BYTES, _TEXT):
        piece = data[at : at + number]
        return (piece if kind == _BYTES else piece.decode()), at + number
    values = []
    for _ in range(number * (2 if kind == _MAP else 1)):
        value, at = _read(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if kind == _MAP else values), at


def _endless(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    values = []
    while data[at] != 0xFF:
        value, at = _read(data, at)
        values.append(value)
    if kind == _MAP:
        return dict(zip(values[::2], values[1::2], strict=True)), at + 1
    return values, at + 1
