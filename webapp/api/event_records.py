"""TensorBoard's event files, as bytes: records with checksums, each an Event of scalars in protobuf's wire format.

A record is its length, the masked CRC-32C of that, the event, and the masked CRC-32C of the event.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_POLYNOMIAL = 0x82F63B78


def _table() -> tuple[int, ...]:
    entries = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        entries.append(byte)
    return tuple(entries)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + _masked(length) + event + _masked(event)


def file_version(at_s: float) -> bytes:
    """The event that begins every file."""
    return b"\x09" + struct.pack("<d", at_s) + _bytes(3, b"brain.Event:2")


def scalars(at_s: float, step: int, values: Iterable[tuple[str, float]]) -> bytes:
    """An event with the values of one step."""
    summary = b"".join(
        _bytes(1, _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in values
    )
    return b"\x09" + struct.pack("<d", at_s) + b"\x10" + _varint(step) + _bytes(5, summary)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
