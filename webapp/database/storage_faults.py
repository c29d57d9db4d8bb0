"""What requests answer, and what the worker tries later, where a disk or the database cannot be written."""

from __future__ import annotations

import errno
from typing import NamedTuple

from webapp.database.faults import causes_of, is_unavailable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_UNUSABLE = frozenset({errno.EROFS, errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOTCONN})
_SQLITE_FULL = 13
_POSTGRESQL_FULL = "53100"


class StorageFault(NamedTuple):
    """The status that says so, why in a sentence, and what to do."""

    status: int
    why: str
    fix: str


FULL = StorageFault(
    507,
    "The disk of this installation is full.",
    "Try again once the operator has made room. Jobs that run wait for it and go on by themselves.",
)
UNUSABLE = StorageFault(
    503,
    "The disk of this installation cannot be written at the moment.",
    "Try again in a few minutes. Jobs that run wait for it and go on by themselves.",
)
NO_DATABASE = StorageFault(
    503,
    "The database of this installation cannot be written at the moment.",
    "Try again in a few minutes. Jobs that run wait for it and go on by themselves.",
)


def storage_fault(error: BaseException | None) -> StorageFault | None:
    """Return what to say of an error that a disk or the database made; None for all others."""
    for cause in causes_of(error):
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return FULL
        if isinstance(cause, OSError) and cause.errno in _UNUSABLE:
            return UNUSABLE
        code, state = getattr(cause, "sqlite_errorcode", None), getattr(cause, "sqlstate", None)
        if (code is not None and code & 0xFF == _SQLITE_FULL) or state == _POSTGRESQL_FULL:
            return FULL
    return NO_DATABASE if is_unavailable(error) else None
