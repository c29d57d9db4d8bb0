"""The master keys of this installation: from STARLING_MASTER_KEYS, else in a file of the data folder.

One key a line (in the variable: separated by commas), 32 bytes as URL-safe base64. The first seals new secrets;
the others open older ones. The file is made on first use, readable by its owner only.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from webapp import private_files
from webapp.connections import queries
from webapp.connections.models import SealedRow
from webapp.connections.sealing import KEY_BYTES, CannotOpen, CannotUnseal, MasterKey, rewrap

FILE_NAME = "master_keys"


class KeysUnusable(CannotOpen):
    """The master keys cannot be used; the text says what to do."""


class KeyRing:
    """Master keys. The first one seals."""

    def __init__(self, keys: Sequence[MasterKey]) -> None:
        self.first = keys[0]
        self.by_id: Mapping[str, MasterKey] = {key.id: key for key in keys}

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self.by_id)})"


def new_key() -> str:
    """A new master key, in the form of the file."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def keys_file() -> Path:
    return Path(settings.STARLING_DATA) / FILE_NAME


def given_by_operator() -> bool:
    """Whether the operator gives the keys as a variable. Otherwise Starling keeps them in the file."""
    return bool(settings.STARLING_MASTER_KEYS)


def ring() -> KeyRing:
    """The current keys, read again each time: another process may have added one. Raises KeysUnusable."""
    if given_by_operator():
        return _parsed(settings.STARLING_MASTER_KEYS, "STARLING_MASTER_KEYS")
    path = keys_file()
    if not path.exists():
        private_files.create_once(path, _file_of([new_key()]))
    _require_private(path)
    return _parsed(_lines(path), str(path))


@contextmanager
def locked(*, alone: bool = False) -> Iterator[None]:
    """Lock the key ring, so that no key is removed while another process seals with it.

    A process that seals holds a shared lock. One that removes keys holds it alone until the remaining keys are stored.
    """
    if given_by_operator():
        yield
        return
    descriptor = os.open(keys_file().with_name(f"{FILE_NAME}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def add_first(key: str) -> None:
    """Add a key to the file. It seals from now on."""
    private_files.replace(keys_file(), _file_of([key, *_lines(keys_file())]))


def remove_others(key_ids: set[str]) -> list[str]:
    """Remove keys with other ids from the file, except the first. Returns the removed ids."""
    first, *rest = _lines(keys_file())
    kept = [first, *(line for line in rest if _key(line, "").id in key_ids)]
    gone = [_key(line, "").id for line in rest if line not in kept]
    if gone:
        private_files.replace(keys_file(), _file_of(kept))
    return gone


def _parsed(lines: Sequence[str], source: str) -> KeyRing:
    if not lines:
        raise KeysUnusable(f"{source} holds no master key. Put the keys back that were there.")
    return KeyRing([_key(line, source) for line in lines])


def _key(line: str, source: str) -> MasterKey:
    try:
        return MasterKey.of(base64.b64decode(line.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        # The message omits the line: it may be a key with one letter missing.
        raise KeysUnusable(
            f"{source} holds something that is no master key: each is {KEY_BYTES} bytes in URL-safe base64."
            " `manage.py rotate-keys --new` prints one."
        ) from None


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except OSError as error:
        raise KeysUnusable(f"{path} cannot be read: {error.strerror}.") from None


def _file_of(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _require_private(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise KeysUnusable(
            f"{path} holds the master keys and can be read by others (mode {mode:04o}). Run `chmod 600 {path}`."
        )


_ROWS_AT_ONCE = 200


@dataclass(frozen=True)
class Rotation:
    """The result of a rotation: rows now under `key_id`, rows that could not be opened, and removed keys."""

    key_id: str
    rewrapped: int
    unopened: tuple[str, ...]
    retired: tuple[str, ...]


def rotate(*, retire: bool = False) -> Rotation:
    """Wrap every row's data key with the first master key. If Starling keeps the keys, a new one is made first.

    With `retire`, keys that no row needs are removed from the file. A row that cannot be opened stays unchanged and is
    reported, and its key stays.
    """
    if not given_by_operator():
        ring()  # makes the file if there is none, and refuses one that is not private
        with locked(alone=True):
            add_first(new_key())
    rewrapped, unopened = _rewrap_all()
    retired: list[str] = []
    if retire and not given_by_operator():
        with locked(alone=True):
            retired = remove_others(set(queries.secrets_by_key()))
    return Rotation(ring().first.id, rewrapped, tuple(unopened), tuple(retired))


def _rewrap_all() -> tuple[int, list[str]]:
    rewrapped = 0
    unopened: list[str] = []
    for table in SealedRow.__subclasses__():
        done, left = _rewrap_table(table)
        rewrapped, unopened = rewrapped + done, unopened + left
    return rewrapped, unopened


def _rewrap_table(table: type[SealedRow]) -> tuple[int, list[str]]:
    keys, rewrapped, after = ring(), 0, 0
    unopened: list[str] = []
    while True:
        with transaction.atomic():
            rows = list(
                table._default_manager.select_for_update(of=("self",))
                .filter(pk__gt=after)
                .exclude(key_id=keys.first.id)
                .order_by("pk")[:_ROWS_AT_ONCE]
            )
            for row in rows:
                try:
                    fresh = rewrap(row.sealed(), row.place(), keys.by_id, keys.first)
                except CannotUnseal as error:
                    unopened.append(f"{row}: {error}")
                    continue
                row.key_id, row.wrapped_key = fresh.key_id, fresh.wrapped_key
                row.save(update_fields=["key_id", "wrapped_key"])
                rewrapped += 1
        if not rows:
            return rewrapped, unopened
        after = rows[-1].pk
