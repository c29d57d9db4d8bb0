"""Tables as NumPy's archives (NPZ): each entry is a column, read in pieces; nothing is unpacked to disk or unpickled.

Sizes of headers are compared with those of the archive before anything is allocated.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from training.data.readers.tables import (
    FOLD_COUNTS_FROM_BYTES,
    MOST_ROWS,
    MOST_UNPACKED_BYTES,
    MOST_UNPACKED_FOLD,
    Cells,
    Piece,
    TableRefused,
)

MOST_ENTRIES = 200
_SUFFIX = ".npy"
_PIECE_BYTES = 2_000_000
_LONGEST_HEADER = 10_000
_NUMBERS, _TEXTS = "biuf", "US"
_DIMENSIONS_LIMIT = 8
_PACKED_BY = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
_LAST_LETTER, _HALVES = 0x10FFFF, (0xD800, 0xDFFF)
"""Of Unicode: its last code point, and those that only stand in pairs."""


@dataclass(frozen=True)
class _Entry:
    """One array. `problem` says why it cannot be a column; empty if it can."""

    file: zipfile.ZipInfo
    header_bytes: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    problem: str = ""

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


class NpzTable:
    """An open archive. Entries may have different numbers of rows."""

    format = "npz"

    def __init__(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
            files = self._zip.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise TableRefused(
                f"The archive cannot be read ({error}). Save it again with numpy.savez."
            ) from None
        _check_files(files, path.stat().st_size)
        self._entries = {file.filename.removesuffix(_SUFFIX): self._entry(file) for file in files}
        self.names = tuple(self._entries)

    @property
    def read_together(self) -> Sequence[tuple[str, ...]]:
        return [(name,) for name in self.names]

    def row_number(self, row: int) -> int:
        return row + 1

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def dtype(self, name: str) -> np.dtype[np.generic]:
        return self._entries[name].dtype

    def problem(self, name: str) -> str:
        """Return why the entry cannot be a column; empty if it can."""
        return self._entries[name].problem

    def pieces(self, names: Sequence[str], *, as_cells: bool = False) -> Iterator[Piece]:
        entries = [self._entries[name] for name in names]
        rows = min(entry.shape[0] for entry in entries)
        largest = max(max(entry.row_bytes, 8 * math.prod(entry.shape[1:])) for entry in entries)
        step = max(1, _PIECE_BYTES // max(1, largest))
        with ExitStack() as stack:
            streams = [stack.enter_context(self._zip.open(entry.file)) for entry in entries]
            for name, entry, stream in zip(names, entries, streams, strict=True):
                _take(stream, entry.header_bytes, name)
            for begin in range(0, rows, step):
                count = min(step, rows - begin)
                pairs = zip(names, entries, streams, strict=True)
                columns = [_values(_take(stream, count * entry.row_bytes, name), entry, count, begin, name)
                           for name, entry, stream in pairs]  # fmt: skip
                yield Piece(begin, columns)

    def _entry(self, file: zipfile.ZipInfo) -> _Entry:
        name = file.filename.removesuffix(_SUFFIX)
        try:
            with self._zip.open(file) as stream:
                version = np.lib.format.read_magic(stream)
                read = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, by_column, dtype = read[version](stream, max_header_size=_LONGEST_HEADER)
                header_bytes = stream.tell()
        except Exception:  # numpy parses the header as Python, and raises whatever that raises
            raise TableRefused(
                f"Entry “{name}” is no array of numbers or text; it may hold Python objects (pickle), which are never"
                " read. Save arrays with numpy.savez."
            ) from None
        if dtype.hasobject:
            raise TableRefused(
                f"Entry “{name}” holds Python objects (pickle), which could run code when read. Save it as numbers"
                " or text."
            )
        if header_bytes + math.prod(shape) * dtype.itemsize != file.file_size or min(shape, default=0) < 0:
            raise TableRefused(
                f"Entry “{name}” says that it is an array of {' × '.join(map(str, shape)) or 'no'} values, but it has"
                f" {file.file_size:,} bytes. Save it again with numpy.savez."
            )
        return _Entry(file, header_bytes, shape, dtype, _problem(shape, by_column, dtype))


def _check_files(files: list[zipfile.ZipInfo], packed_bytes: int) -> None:
    """Raise TableRefused unless the archive holds arrays alone, in names without folders, and is not too large."""
    if not files:
        raise TableRefused("The archive is empty. Save arrays with numpy.savez.")
    if len(files) > MOST_ENTRIES:
        raise TableRefused(f"The archive has {len(files):,} entries; at most {MOST_ENTRIES} are allowed.")
    seen: set[str] = set()
    for file in files:
        shown = f"“{file.filename[:80]}”"
        if "/" in file.filename or "\\" in file.filename or file.filename.startswith("."):
            raise TableRefused(f"Entry {shown} has a path in its name. Save arrays with numpy.savez.")
        if not file.filename.endswith(_SUFFIX) or len(file.filename) > 200:
            raise TableRefused(
                f"Entry {shown} is no NumPy array. Upload CSV, or arrays saved with numpy.savez."
            )
        if file.filename in seen:
            raise TableRefused(f"Two entries are named {shown}. Give each its own name.")
        if file.flag_bits & _ENCRYPTED or file.compress_type not in _PACKED_BY:
            raise TableRefused(f"Entry {shown} is encrypted or packed in a way that NumPy does not use.")
        seen.add(file.filename)
    unpacked = sum(file.file_size for file in files)
    too_well = unpacked > max(FOLD_COUNTS_FROM_BYTES, MOST_UNPACKED_FOLD * packed_bytes)
    if unpacked > MOST_UNPACKED_BYTES or too_well:
        raise TableRefused(
            f"The archive would unpack from {packed_bytes:,} to {unpacked:,} bytes, which is too much: at most"
            f" {MOST_UNPACKED_BYTES:,}, and {MOST_UNPACKED_FOLD} times its size."
        )


def _problem(shape: tuple[int, ...], by_column: bool, dtype: np.dtype[np.generic]) -> str:
    if dtype.kind not in _NUMBERS + _TEXTS:
        return f"its type {dtype} is neither numbers nor text"
    if not dtype.itemsize:
        return "its texts have no letters"
    if len(shape) > _DIMENSIONS_LIMIT:
        return f"it has {len(shape)} dimensions; at most {_DIMENSIONS_LIMIT} are allowed"
    if dtype.kind in _TEXTS and len(shape) != 1:
        return "text is one column of rows"
    if not shape or not math.prod(shape):
        return "it has no rows"
    if by_column and len(shape) > 1:
        return "it is saved column by column; save numpy.ascontiguousarray of it"
    if shape[0] > MOST_ROWS:
        return f"it has more than {MOST_ROWS:,} rows"
    if math.prod(shape[1:]) * 8 > 8 * _PIECE_BYTES:
        return f"a row of it has {math.prod(shape[1:]):,} numbers; at most {_PIECE_BYTES:,} are allowed"
    return ""


def _take(stream: IO[bytes], count: int, name: str) -> bytes:
    parts: list[bytes] = []
    left = count
    try:
        while left:
            part = stream.read(left)
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile):
        raise TableRefused(
            f"Entry “{name}” is damaged or incomplete. Save it again with numpy.savez."
        ) from None
    return b"".join(parts)


def _values(
    data: bytes, entry: _Entry, rows: int, first_row: int, name: str
) -> npt.NDArray[np.float64] | Cells:
    array = np.frombuffer(data, entry.dtype).reshape(rows, *entry.shape[1:])
    if entry.dtype.kind in _TEXTS:
        return _texts(array, data, first_row, name)
    if array.ndim > 2:
        array = array.reshape(rows, -1)
    return array if array.dtype == np.uint8 else array.astype(np.float64)


def _texts(array: npt.NDArray[np.generic], data: bytes, first_row: int, name: str) -> Cells:
    """Return cells of letters that can be stored and sent: no halves of pairs, no numbers that are no letter, no NUL.
    `data` is the array's buffer.
    """
    if array.dtype.kind == "U":
        codes = np.frombuffer(data, np.dtype("u4").newbyteorder(array.dtype.byteorder))
        bad = (codes > _LAST_LETTER) | ((codes >= _HALVES[0]) & (codes <= _HALVES[1]))
        if bad.any():
            raise _no_text(first_row + int(np.argmax(bad)) // (array.dtype.itemsize // 4), name)
    cells = [_text(cell, first_row + row, name) for row, cell in enumerate(array.tolist())]
    if "\0" in "".join(cells):
        raise _no_text(first_row + next(row for row, cell in enumerate(cells) if "\0" in cell), name)
    return cells


def _text(cell: str | bytes, row: int, name: str) -> str:
    try:
        return cell.decode() if isinstance(cell, bytes) else cell
    except UnicodeDecodeError:
        raise _no_text(row, name) from None


def _no_text(row: int, name: str) -> TableRefused:
    return TableRefused(f"Row {row + 1:,}, column “{name}” is not UTF-8 text.")
