"""The folder in which one installation keeps everything; at most one `manage.py up` at a time holds it.

The lock is the kernel's: it goes with the process that holds it, however that ends. What the file says is only for
people.
"""

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path


class FolderHeld(Exception):
    """Another process runs Starling on this folder. The message says which, where, since when, and what to do."""


class FolderLock:
    """An exclusive hold on a data folder, from `take` until `release` or the end of this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "lock"
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the folder. Raises FolderHeld."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise FolderHeld(self._holder()) from None
        self._descriptor = descriptor
        self.describe(url=None)

    def describe(self, *, url: str | None) -> None:
        """Write down which process holds the folder, for the message of FolderHeld."""
        assert self._descriptor is not None, "take the folder first"
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "url": url, "since": now}).encode(), 0)

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _holder(self) -> str:
        try:
            holder = json.loads(self._path.read_text())
            pid, url, since = holder["pid"], holder["url"], holder["since"]
        except (ValueError, KeyError):
            return (
                f"Starling already runs on {self._folder}. Stop that one, or name another folder with --data."
            )
        at = f" at {url}" if url else " (still starting)"
        return (
            f"Starling already runs on {self._folder}: process {pid}{at}, since {since}. "
            f"Stop it with `kill {pid}`, or name another folder with --data."
        )
