"""Files of users, opened with care: gzipped or not, and never more in memory than a reader asked for."""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from training.data.dataset import BadTable

LINE_LIMIT_BYTES = 2**20
UNREADABLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(ArithmeticError, EOFError, OSError, RuntimeError, ValueError),
)
"""What reading an archive raises: hostile headers raise more than the archives' own errors, such as RecursionError."""
_CHUNK = 2**20


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked if it is gzipped. Damage that is found while reading raises BadTable."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadTable(f"{path.name} is damaged: {error}.") from None


def read_exactly(file: BinaryIO, count: int, name: str) -> bytearray:
    """Return the next `count` bytes. Memory grows with what is there. Raises BadTable if there are fewer."""
    data = bytearray()
    while len(data) < count:
        piece = file.read(min(_CHUNK, count - len(data)))
        if not piece:
            raise BadTable(
                f"{name} ends after {len(data):,} bytes of its contents; it says it has {count:,}."
            )
        data += piece
    return data


def lines_of(file: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """Yield each line that is not empty, with its number, without its end. Raises BadTable.

    Bytes that are no UTF-8 are read as Latin-1, in which older collections of texts are written.
    """
    number = 0
    while line := file.readline(LINE_LIMIT_BYTES + 1):
        number += 1
        if len(line) > LINE_LIMIT_BYTES:
            raise BadTable(f"Line {number:,} of {name} is longer than {LINE_LIMIT_BYTES:,} bytes.")
        if text := decoded(line).rstrip("\r\n"):
            yield number, text


def decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
