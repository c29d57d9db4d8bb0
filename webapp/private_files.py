"""Files that only this user may read: keys, without which what is sealed or signed is lost.

They are written beside their place and synced to disk, then linked or renamed to it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def create_once(path: Path, text: str) -> None:
    """Create the file. If several processes do so at once, the first to link its file wins."""
    beside = _written(path, text)
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        beside.unlink()


def replace(path: Path, text: str) -> None:
    """Write the file, or leave it as it was."""
    os.replace(_written(path, text), path)


def _written(path: Path, text: str) -> Path:
    # Not named by process id: a killed process may have left its file, and ids are reused.
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        beside.unlink()
        raise
    return beside
