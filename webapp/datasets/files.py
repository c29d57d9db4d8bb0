"""Where data sets lie in the data folder: uploads until their shards are stored, and shards by their hash.

Jobs read from there. Data sets shipped with Starling are made once: that takes seconds and memory, so a process of its
own does it, whichever process is the first to need it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from django.conf import settings

from training.data.manifest import Manifest
from training.data.shard import BadShard
from training.data.store import FolderStore, MissingData

MOST_UPLOADED_BYTES = 200_000_000
_LEFT_AFTER = timedelta(hours=1)
_WITHIN_S = 300.0
"""For making a shipped data set."""


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
    for shard in names_of(manifest):
        (folder / shard).replace(shards() / shard)
    return manifest


def leftovers(now: datetime) -> dict[Path, int | None]:
    """Files and folders that no upload or attempt of the last hour writes to, with the number in their name."""
    paths: dict[Path, int | None] = {}
    for path in uploads().iterdir():
        try:
            written_s = path.stat().st_mtime
        except FileNotFoundError:
            continue
        if written_s < (now - _LEFT_AFTER).timestamp():
            number = path.name.partition(".")[0].partition("-")[0]
            paths[path] = int(number) if number.isdecimal() else None
    return paths


def remove(path: Path) -> None:
    """Remove a file, or a folder with what is in it, if it is still there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def keep(file: BinaryIO) -> tuple[Path, int]:
    """A copy of the file under a unique name, and its size. Raises TooLarge."""
    byte_count = 0
    descriptor, name = mkstemp(dir=uploads(), suffix=".part")
    path = Path(name)
    try:
        with open(descriptor, "wb") as part:  # its end writes, too
            while piece := file.read(1 << 20):
                byte_count += len(piece)
                if byte_count > MOST_UPLOADED_BYTES:
                    raise TooLarge
                part.write(piece)
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
    return {manifest.hash, *(shard.hash for shard in (*manifest.shards, *manifest.held_out_shards))}


def missing_shards(manifest: Manifest) -> int:
    """How many of its shards are no longer stored, or have another size."""
    count = 0
    for shard in (*manifest.shards, *manifest.held_out_shards):
        path = shards() / shard.hash
        count += not path.is_file() or path.stat().st_size != shard.byte_count
    return count


class DataFolderStore:
    """The store of the data folder, wherever the settings say that it is."""

    def get(self, name: str) -> bytes:
        return store().get(name)

    def put(self, data: bytes) -> str:
        return store().put(data)


def shipped_manifest(key: str) -> Manifest:
    """The manifest of a data set shipped with Starling. Raises MissingData if it cannot be made here."""
    note = shipped_note(key)
    known = read_manifest(note.read_text()) if note.is_file() else None
    if known is not None and not missing_shards(known):
        return known
    command = [sys.executable, "-m", "training.data.readers", "ship", key, str(shards())]
    try:
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise MissingData(f"The data set {key} took too long to make. Try again.") from None
    made = read_manifest(done.stdout.strip()) if done.returncode == 0 else None
    if made is None:
        raise MissingData(
            done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{key} cannot be made."
        )
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(made.hash)
    return made
