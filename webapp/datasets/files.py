"""Where data sets lie in the data folder: uploads until their shards are stored, and shards by their hash."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from django.conf import settings

from training.data.manifest import Manifest
from training.data.shard import BadShard
from training.data.store import FolderStore, MissingData

MOST_UPLOADED_BYTES = 200_000_000
_LEFT_AFTER = timedelta(hours=1)


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


def prepared_folder(data_set_id: int, attempt: int) -> Path:
    """Where an attempt stores shards, until they are certainly wanted."""
    return uploads() / f"{data_set_id}-{attempt}.made"


def take_over(folder: Path, name: str) -> Manifest:
    """Move the data set of that manifest from the folder to where jobs read it. Raises ValueError and LookupError."""
    manifest = Manifest.decode(FolderStore(folder).get(name))
    shards().mkdir(parents=True, exist_ok=True)
    for one in names_of(manifest):
        (folder / one).replace(shards() / one)
    return manifest


def leftovers(now: datetime) -> dict[Path, int | None]:
    """Files and folders that no upload or attempt of the last hour writes to, with the number in their name."""
    found: dict[Path, int | None] = {}
    for path in uploads().iterdir():
        try:
            written_s = path.stat().st_mtime
        except FileNotFoundError:
            continue
        if written_s < (now - _LEFT_AFTER).timestamp():
            number = path.name.partition(".")[0].partition("-")[0]
            found[path] = int(number) if number.isdecimal() else None
    return found


def remove(path: Path) -> None:
    """Remove a file, or a folder with what is in it, if it is still there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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


def shipped_note(key: str) -> Path:
    """The file that names the manifest of a data set shipped with Starling, once it is made here."""
    return folder() / "shipped" / key


def shipped_manifests() -> list[str]:
    return [note.read_text() for note in shipped_note("").glob("*")]


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
