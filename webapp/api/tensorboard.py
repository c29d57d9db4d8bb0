"""A run for TensorBoard: every figure of every round by step, under common names.

An event file is a sequence of records: the length of an event, the masked CRC-32C of that, the event, and the masked
CRC-32C of the event. An event holds scalars in protobuf's wire format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from webapp.api.job_serialization import evaluations_of
from webapp.jobs.charts.scalars import EVALUATION, scalars_of
from webapp.jobs.models import Job, Round

_ROUNDS_AT_ONCE = 500


def event_file(job: Job) -> Iterator[bytes]:
    """The file in chunks. Its times are the platform's, from the job's start, so that simulated time is kept."""
    began_s = (job.started_at or job.created_at).timestamp()
    yield record(file_version(began_s))
    evaluations = {row.round_no: row.evaluated_score for row in evaluations_of(job)}
    cost_so_far = 0
    rows = Round.objects.filter(job=job, round_no__lte=job.round_no).order_by("round_no")
    pieces = []
    for report in rows.values_list("payload__report", flat=True).iterator(chunk_size=_ROUNDS_AT_ONCE):
        cost_so_far += report.get("cost_picodollars") or 0
        values = dict(scalars_of(report, cost_so_far))
        judged = evaluations.get(report["round_no"])
        if judged is not None:
            values[EVALUATION] = judged
        at_s = began_s + report["started_s"] + report["total_s"]
        pieces.append(record(scalars(at_s, report["total_env_steps"], values.items())))
        if len(pieces) == _ROUNDS_AT_ONCE:
            yield b"".join(pieces)
            pieces.clear()
    yield b"".join(pieces)


# Records

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
    return b"\x09" + struct.pack("<d", at_s) + _bytes(3, b"brain.Event:2")


def scalars(at_s: float, step: int, values: Iterable[tuple[str, float]]) -> bytes:
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
