"""The folder in which one installation keeps everything. It belongs to one user of the machine, who alone may read it.

At most one `manage.py up` at a time holds it. The lock is the kernel's: it goes with the process that holds it, however
that ends. What the file says is only for people.
"""

import fcntl
import json
import os
import pwd
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FolderRefused(Exception):
    """Files in this folder could not be kept from other users of the machine. The message says why and what to do."""


def close_to_others(folder: Path) -> None:
    """Create the folder, or take other users' rights to it away. What this process creates from now on has none either.

    Raises FolderRefused if the folder is another user's or stays open, and OSError.
    """
    os.umask(_OTHERS)
    folder.mkdir(parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise FolderRefused(
            f"it belongs to {_user(found.st_uid)}, while Starling runs as {_user(os.geteuid())} and keeps sessions and "
            f"keys there. Run Starling as {_user(found.st_uid)}, or name another folder, which Starling creates."
        )
    if _close(folder):
        return
    raise FolderRefused(
        "other users of this machine can read it: its file system does not keep modes. Name a folder on one that does."
    )


def close_contents(folder: Path) -> int:
    """Take other users' rights to everything in the folder away, and return how many files and folders had any.

    Raises FolderRefused if one of them cannot be changed.
    """
    open_paths = [path for path in _contents(folder) if _is_open(path)]
    for path in open_paths:
        if not _close(path):
            raise FolderRefused(
                f"{path} can be read by other users of this machine and belongs to {_user(path.lstat().st_uid)}. "
                f"Run `chown -R {_user(os.geteuid())} {folder}` as root, and start again."
            )
    return len(open_paths)


def _contents(folder: Path) -> Iterator[Path]:
    for inside, folders, files in os.walk(folder):
        yield from (Path(inside, name) for name in (*folders, *files))


def _is_open(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # another process deleted it
        return False
    return not stat.S_ISLNK(mode) and bool(mode & _OTHERS)


def _close(path: Path) -> bool:
    """Whether the path is closed to other users now."""
    try:
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
    except (FileNotFoundError, PermissionError):
        pass
    return not _is_open(path)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


class FolderHeld(Exception):
    """Another process runs Starling on this folder. The message says which, where, since when, and what to do."""


class FolderLock:
    """An exclusive hold on a data folder, from `take` until `release` or the end of this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "lock"
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the folder, which exists. Raises FolderHeld."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
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
