"""One view of the database for several queries, while others go on writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction


@contextmanager
def database_snapshot() -> Iterator[None]:
    """Let all queries of the block see the database as it is at the first one. Inside a transaction, that one counts.

    SQLite's transactions usually begin as writers (see the settings); this one only reads, so no writer waits for it.
    """
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        sqlite: Any = connection
        sqlite.ensure_connection()
        usual, sqlite.transaction_mode = sqlite.transaction_mode, "DEFERRED"
        try:
            with transaction.atomic():
                sqlite.transaction_mode = usual
                yield
        finally:
            sqlite.transaction_mode = usual
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
