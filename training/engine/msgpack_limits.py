"""Unpacks msgpack as plain values, with limits that are checked before anything is allocated.

msgpack's own limits apply to one container at a time: four megabytes of nested or empty tables become hundreds of
megabytes of Python objects. So the bytes are scanned once before they are unpacked.
"""

from __future__ import annotations

from typing import Any

import msgpack

VALUES_LIMIT = 131_072
DEPTH_LIMIT = 32

# How many bytes follow a value's first byte; -1: the first byte alone does not say.
_FOLLOWING = [-1] * 256
_FOLLOWING[0x00:0x80] = [0] * 0x80
_FOLLOWING[0xE0:0x100] = [0] * 0x20
_FOLLOWING[0xA0:0xC0] = range(0x20)
for _first, _count in {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    **dict.fromkeys((0xCC, 0xD0), 1),
    **dict.fromkeys((0xCD, 0xD1), 2),
    **dict.fromkeys((0xCA, 0xCE, 0xD2), 4),
    **dict.fromkeys((0xCB, 0xCF, 0xD3), 8),
}.items():
    _FOLLOWING[_first] = _count
# For texts, bytes, lists and tables: how many bytes hold their length.
_TEXTS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_TABLES = {0xDE: 2, 0xDF: 4}


def unpack(data: bytes) -> Any:
    """Return the value in `data`. Raises ValueError if it is not msgpack of plain values, or is beyond the limits."""
    check(data)
    try:
        return msgpack.unpackb(data, raw=False, max_bin_len=len(data), max_str_len=len(data))
    except msgpack.UnpackException as error:
        raise ValueError(str(error)) from None


def check(data: bytes) -> None:
    """Raise ValueError unless `data` is one value with at most VALUES_LIMIT values in it, DEPTH_LIMIT deep."""
    at, end = 0, len(data)
    values = left = 1
    outside: list[int] = []
    while True:
        while not left:
            if not outside:
                if at != end:
                    raise ValueError("bytes follow the value, or are missing from it")
                return
            left = outside.pop()
        if at >= end:
            raise ValueError("the value is cut off")
        left -= 1
        first = data[at]
        at += 1
        following = _FOLLOWING[first]
        if following >= 0:
            at += following
            continue
        if first in _TEXTS:
            width = _TEXTS[first]
            at += width + int.from_bytes(data[at : at + width], "big")
            continue
        inside, width = _inside(first, data, at)
        at += width
        values += inside
        if inside > end - at or values > VALUES_LIMIT:
            raise ValueError(f"more than {VALUES_LIMIT:,} values, or more than there are bytes for")
        if len(outside) == DEPTH_LIMIT:
            raise ValueError(f"values more than {DEPTH_LIMIT} deep")
        outside.append(left)
        left = inside


def _inside(first: int, data: bytes, at: int) -> tuple[int, int]:
    """Return how many values are in the list or table that begins with `first`, and how many bytes hold that count."""
    if 0x80 <= first < 0x90:
        return 2 * (first & 0x0F), 0
    if 0x90 <= first < 0xA0:
        return first & 0x0F, 0
    width = _LISTS.get(first) or _TABLES.get(first)
    if width is None:
        raise ValueError(f"a value of kind 0x{first:02x}, which is not plain")
    length = int.from_bytes(data[at : at + width], "big")
    return (length if first in _LISTS else 2 * length), width
