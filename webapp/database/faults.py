"""Whether the database refused a write because its disk is full, read-only or away, or is away itself."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import DatabaseError

log = logging.getLogger(__name__)

_SQLITE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR}
)
_PRIMARY = 0xFF
"""The lowest byte of SQLite's extended codes is the primary one."""
_POSTGRESQL = frozenset({"53100", "25006", "58030"})
"""disk_full, read_only_sql_transaction, io_error."""
_CONNECTION_FAILED = "08"
_SHUT_DOWN = frozenset({"57P01", "57P02", "57P03"})
"""admin_shutdown, crash_shutdown, cannot_connect_now."""


def lacks_storage(error: BaseException | None) -> bool:
    """Return whether `error`, or one that led to it, is the database's refusal for want of a disk to write to."""
    for cause in causes_of(error):
        code = getattr(cause, "sqlite_errorcode", None)
        if code is not None and code & _PRIMARY in _SQLITE:
            return True
        if getattr(cause, "sqlstate", None) in _POSTGRESQL:
            return True
    return False


def is_unavailable(error: BaseException | None) -> bool:
    """Return whether `error`, or one that led to it, may pass by itself: no disk to write to, or no server."""
    return lacks_storage(error) or any(_lost_connection(cause) for cause in causes_of(error))


def _lost_connection(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", "")
    if state is None:  # the server did not answer, so it gave no code
        return isinstance(error, psycopg.OperationalError)
    return str(state) in _SHUT_DOWN or str(state).startswith(_CONNECTION_FAILED)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def dispensable_write() -> Iterator[None]:
    """Let a page do without the block's write while the database cannot be written."""
    try:
        yield
    except DatabaseError as error:
        if not lacks_storage(error):
            raise
        log.warning("not written: %s", error)
