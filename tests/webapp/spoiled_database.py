"""Ways in which the test's database cannot be written for a while. Each returns what mends it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


def execute(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


def fill() -> Callable[[], object]:
    """No page more fits into this connection's database. Pages that are free would still take some rows."""
    execute("VACUUM")
    execute(f"PRAGMA max_page_count = {execute('PRAGMA page_count')}")
    return lambda: execute("PRAGMA max_page_count = 4294967294")


def make_read_only() -> Callable[[], object]:
    if connection.vendor == "sqlite":
        execute("PRAGMA query_only = ON")
        return lambda: execute("PRAGMA query_only = OFF")
    execute("SET default_transaction_read_only = on")
    return lambda: execute("SET default_transaction_read_only = off")


def shut_down() -> Callable[[], object]:
    """PostgreSQL ends this connection and takes no other."""
    own = connection.settings_dict["NAME"]
    with connection._nodb_cursor() as server:
        server.execute(f'ALTER DATABASE "{own}" ALLOW_CONNECTIONS false')
        server.execute("SELECT pg_terminate_backend(%s)", [execute("SELECT pg_backend_pid()")])

    def mend() -> None:
        with connection._nodb_cursor() as server:
            server.execute(f'ALTER DATABASE "{own}" ALLOW_CONNECTIONS true')

    return mend


@contextmanager
def failing_at(statement: str, error: BaseException, *, time: int = 1) -> Iterator[None]:
    """This connection raises `error` at the `time`-th statement that begins like this, and is well again after it."""
    seen = 0

    def execute_or_fail(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        nonlocal seen
        seen += sql.startswith(statement)
        if seen == time and sql.startswith(statement):
            raise error
        return execute(sql, *more)

    with connection.execute_wrapper(execute_or_fail):
        yield


Spoiler = Callable[[], Callable[[], object]]
SPOILERS: list[Spoiler] = (
    [make_read_only, shut_down]
    if "postgresql" in os.environ.get("DATABASE_URL", "")
    else [fill, make_read_only]
)
