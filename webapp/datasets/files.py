"""Where data sets lie in the data folder: uploads until their shards are stored, and shards by their hash."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from django.conf import settings

from training.data.manifest import Manifest
from training.data.shard import BadShard
from training.data.store import FolderStore, MissingData

MOST_UPLOADED_BYTES = 200_000_000


class TooLarge(ValueError):
    """The file has more bytes than may be uploaded."""


def folder() -> Path:
    return Path(settings.STARLING_DATA) / "datasets"


def uploads() -> Path:
    path = folder() / "uploads"
    path.mkdir(parents=True, exist_ok=True)
    return path


def shards() -> Path:
    return folder() / "shards"


def store() -> FolderStore:
    """The store of shards and manifests. Jobs read from it."""
    return FolderStore(shards())


def upload_path(data_set_id: int) -> Path:
    return uploads() / f"{data_set_id}.table"


def keep(file: BinaryIO) -> tuple[Path, int]:
    """A copy of the file under a unique name, and its size. Raises TooLarge."""
    byte_count = 0
    with NamedTemporaryFile(dir=uploads(), suffix=".part", delete=False) as out:
        path = Path(out.name)
        try:
            while piece := file.read(1 << 20):
                byte_count += len(piece)
                if byte_count > MOST_UPLOADED_BYTES:
                    raise TooLarge
                out.write(piece)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path, byte_count


def read_manifest(name: str) -> Manifest | None:
    """The manifest of this hash; None if it is not stored, or was changed."""
    try:
        return Manifest.decode(store().get(name))
    except (MissingData, BadShard, ValueError):
        return None


def names_of(manifest: Manifest) -> set[str]:
    """The names of the files that the manifest and its shards lie in."""
    return {manifest.hash, *(one.hash for one in (*manifest.shards, *manifest.held_out_shards))}


def missing_shards(manifest: Manifest) -> int:
    """How many of its shards are no longer stored, or have another size."""
    count = 0
    for one in (*manifest.shards, *manifest.held_out_shards):
        path = shards() / one.hash
        count += not path.is_file() or path.stat().st_size != one.byte_count
    return count
