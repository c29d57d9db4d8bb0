"""Whether the database refused a write because its disk is full, read-only or away."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError

log = logging.getLogger(__name__)

_SQLITE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
)
_PRIMARY = 0xFF
"""The lowest byte of SQLite's extended codes is the primary one."""
_POSTGRESQL = frozenset({"53100", "25006", "58030"})
"""disk_full, read_only_sql_transaction, io_error."""


def lacks_storage(error: BaseException | None) -> bool:
    """Return whether `error`, or one that led to it, is the database's refusal for want of a disk to write to."""
    while error is not None:
        code = getattr(error, "sqlite_errorcode", None)
        if (code is not None and code & _PRIMARY in _SQLITE) or getattr(
            error, "sqlstate", None
        ) in _POSTGRESQL:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def dispensable_write() -> Iterator[None]:
    """Let a page do without the block's write while the database cannot be written."""
    try:
        yield
    except DatabaseError as error:
        if not lacks_storage(error):
            raise
        log.warning("not written: %s", error)
