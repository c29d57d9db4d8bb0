"""What jobs read data sets from in this installation: the data folder, with those shipped with Starling made once.

Making one takes seconds and memory, so a process of its own does it, whichever process is the first to need it.
"""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings

from training.data.manifest import Manifest
from training.data.store import MissingData
from webapp.datasets import files

_WITHIN_S = 300.0


class DataFolderStore:
    """The store of the data folder, wherever the settings say that it is."""

    def get(self, name: str) -> bytes:
        return files.store().get(name)

    def put(self, data: bytes) -> str:
        return files.store().put(data)


def shipped_manifest(key: str) -> Manifest:
    """The manifest of a data set shipped with Starling. Raises MissingData if it cannot be made here."""
    note = files.shipped_note(key)
    known = files.read_manifest(note.read_text()) if note.is_file() else None
    if known is not None and not files.missing_shards(known):
        return known
    command = [sys.executable, "-m", "training.data.readers", "ship", key, str(files.shards())]
    try:
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise MissingData(f"The data set {key} took too long to make. Try again.") from None
    made = files.read_manifest(done.stdout.strip()) if done.returncode == 0 else None
    if made is None:
        raise MissingData(
            done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{key} cannot be made."
        )
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(made.hash)
    return made
