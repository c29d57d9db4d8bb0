"""Complete runs in one file that only grows: `research/results/EXPERIMENT.runs`.

The file is a sequence of parts, one a run. A part is a prefix and a body. The prefix: `RUN1`, the body's length, its
SHA-256, and a CRC-32 of these three (numbers are little endian). The body is msgpack: the arm, the environment, the
seed, a zstd frame, and a group of runs that say much the same, such as the arm's. The frame unpacks to msgpack again:
the run's rows and its record of work as columns (`columns.py`), and the scheduler that it trained. The first part of a
group and an environment is the dictionary that their later parts are compressed with.

Another seed is another part at the end. An append that was interrupted leaves an incomplete last part: readers leave it
out and the next append removes it. A run that is stored again counts as it was stored last.
"""

from __future__ import annotations

import fcntl
import os
import struct
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import msgpack
import zstandard

from research.experiment import Cell
from research.runs.columns import Json, from_columns, to_columns

_PREFIX = struct.Struct("<4sI32s")
_CHECK = struct.Struct("<I")
_MARK = b"RUN1"
_Group = tuple[str, ...]
_COMPRESSION = zstandard.ZstdCompressionParameters.from_level(19, window_log=24)


class ArchiveError(ValueError):
    """A part is damaged; the message says in which file and where."""


class ArchivedRun:
    """A run's rows, the lines of its record of work, and the scheduler that it trained; None where there is none."""

    def __init__(self, document: Json) -> None:
        self.document = document

    @staticmethod
    def of(rows: list[Json], work: list[Json] | None = None, scheduler: bytes | None = None) -> ArchivedRun:
        columns = None if work is None else to_columns(work)
        return ArchivedRun({"rows": to_columns(rows), "work": columns, "scheduler": scheduler})

    @cached_property
    def rows(self) -> list[Json]:
        return from_columns(self.document["rows"])

    @property
    def has_work(self) -> bool:
        return self.document["work"] is not None

    @cached_property
    def work(self) -> list[Json] | None:
        columns = self.document["work"]
        return None if columns is None else from_columns(columns)

    @property
    def scheduler(self) -> bytes | None:
        found: bytes | None = self.document["scheduler"]
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArchivedRun) and (self.rows, self.work, self.scheduler) == (
            other.rows,
            other.work,
            other.scheduler,
        )

    __hash__ = None  # type: ignore[assignment]


def cells_in(path: Path) -> list[Cell]:
    """The runs in the file; none where there is no file. ArchiveError where it is damaged."""
    return list(_opened(path).frames)


def find_run(path: Path, cell: Cell) -> ArchivedRun | None:
    """The run as it is stored in the file; None if it is not. ArchiveError where the file is damaged."""
    return _opened(path).run(cell)


def add_run(path: Path, cell: Cell, run: ArchivedRun, *, group: str = "") -> None:
    """Append the run to the file, unless this very run is in it, by default to its arm's group. ArchiveError where the
    file is damaged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        content = _opened(path)
        if content.run(cell) == run:
            return
        file.truncate(content.end)
        file.write(content.part(cell, run, group or cell.arm))
        file.flush()
        os.fsync(file.fileno())


def join_archives(folder: Path) -> None:
    """Move the runs of archives of single arms into the archive of their experiment: EXPERIMENT/ARM.runs, as runs were
    stored until 23 November 2026, without groups. ArchiveError where one is damaged; it stays as it is."""
    for path in sorted(folder.glob("*/*.runs")):
        content = _opened(path)
        for cell in content.frames:
            if (run := content.run(cell)) is not None:
                add_run(folder / f"{path.parent.name}.runs", cell, run, group=path.stem)
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()


_last_read: dict[Path, tuple[tuple[int, int], _Content]] = {}
"""Each archive as it was read last, with its time and size then: of one that grows, no earlier versions."""


def _opened(path: Path) -> _Content:
    try:
        status = path.stat()
    except FileNotFoundError:
        return _Content(b"", path.name)
    version = status.st_mtime_ns, status.st_size
    known = _last_read.get(path)
    if known is None or known[0] != version:
        known = _last_read[path] = version, _Content(path.read_bytes(), path.name)
    return known[1]


class _Content:
    """A file's parts. `end` is where the last complete one ends."""

    def __init__(self, data: bytes, name: str) -> None:
        self.frames: dict[Cell, bytes] = {}
        self.end = 0
        self._groups: dict[Cell, _Group] = {}
        self._firsts: dict[_Group, bytes] = {}
        self._dictionaries: dict[_Group, zstandard.ZstdCompressionDict] = {}
        while (part := _body_at(data, self.end, name)) is not None:
            body, self.end = part
            arm, environment, seed, frame, *group = msgpack.unpackb(body)
            cell = Cell(arm, environment, seed)
            self.frames[cell] = frame
            self._groups[cell] = (environment, *group)
            self._firsts.setdefault(self._groups[cell], frame)

    def run(self, cell: Cell) -> ArchivedRun | None:
        frame = self.frames.get(cell)
        if frame is None:
            return None
        group = self._groups[cell]
        dictionary = None if frame is self._firsts[group] else self._dictionary(group)
        return ArchivedRun(
            msgpack.unpackb(zstandard.ZstdDecompressor(dict_data=dictionary).decompress(frame))
        )

    def part(self, cell: Cell, run: ArchivedRun, group: str) -> bytes:
        """The bytes to append for one more run."""
        dictionary = self._dictionary((cell.environment, group))
        compressor = zstandard.ZstdCompressor(compression_params=_COMPRESSION, dict_data=dictionary)
        body: bytes = msgpack.packb([*cell, compressor.compress(msgpack.packb(run.document)), group])
        prefix = _PREFIX.pack(_MARK, len(body), sha256(body).digest())
        return prefix + _CHECK.pack(crc32(prefix)) + body

    def _dictionary(self, group: _Group) -> zstandard.ZstdCompressionDict | None:
        first = self._firsts.get(group)
        if first is not None and group not in self._dictionaries:
            self._dictionaries[group] = zstandard.ZstdCompressionDict(
                zstandard.ZstdDecompressor().decompress(first), dict_type=zstandard.DICT_TYPE_RAWCONTENT
            )
        return self._dictionaries.get(group)


def _body_at(data: bytes, begin: int, name: str) -> tuple[bytes, int] | None:
    """The body of the part that begins there and where it ends; None where no complete part follows."""
    prefix_end = begin + _PREFIX.size
    body_begin = prefix_end + _CHECK.size
    if body_begin > len(data):
        return None
    prefix = data[begin:prefix_end]
    mark, length, digest = _PREFIX.unpack(prefix)
    if mark != _MARK or _CHECK.unpack_from(data, prefix_end) != (crc32(prefix),):
        raise ArchiveError(f"{name} is damaged: at byte {begin} no run begins")
    body = data[body_begin : body_begin + length]
    if len(body) < length:
        return None
    if sha256(body).digest() != digest:
        raise ArchiveError(f"{name} is damaged in the run that begins at byte {begin}")
    return body, body_begin + length
