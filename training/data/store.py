"""Where shards and manifests lie: bytes by their hash."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from training.data.manifest import RowRange
from training.data.rows import Rows, joined
from training.data.shard import check_hash, hash_of, rows_of


class MissingData(LookupError):
    """The store has no bytes of this name: they were deleted, or never written."""


class DataStore(Protocol):
    def get(self, name: str) -> bytes:
        """Return the bytes of this name. Raises MissingData, or BadShard if they were changed."""


class WritableDataStore(DataStore, Protocol):
    def put(self, data: bytes) -> str:
        """Store `data` and return its name. Storing it again changes nothing."""


class MemoryStore:
    """A store in memory."""

    def __init__(self, contents: Mapping[str, bytes] | None = None) -> None:
        self._contents = dict(contents or {})

    def get(self, name: str) -> bytes:
        if name not in self._contents:
            raise MissingData(f"data {name[:12]} is not stored")
        return check_hash(self._contents[name], name)

    def put(self, data: bytes) -> str:
        name = hash_of(data)
        self._contents[name] = data
        return name


class FolderStore:
    """A store in a folder: one file a name. A file that exists is complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> bytes:
        if not _is_name(name):
            raise MissingData(f"{name[:80]!r} names no data")
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise MissingData(f"data {name[:12]} is not stored") from None
        return check_hash(data, name)

    def put(self, data: bytes) -> str:
        name = hash_of(data)
        if not (self._folder / name).exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, unfinished = tempfile.mkstemp(dir=self._folder, prefix=".")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(unfinished, self._folder / name)
            except BaseException:
                os.unlink(unfinished)
                raise
        return name


def read_rows(store: DataStore, ranges: Sequence[RowRange]) -> Rows:
    """Return the rows of at least one range, in order. Raises MissingData and BadShard."""
    return joined([rows_of(store.get(part.shard), part.begin, part.end) for part in ranges])


def _is_name(name: str) -> bool:
    return len(name) == 64 and not set(name) - set("0123456789abcdef")
