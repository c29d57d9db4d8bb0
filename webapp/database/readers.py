"""Threads that read the database for an event loop: the live feed of jobs and the gateway share them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

Result = TypeVar("Result")
_THREADS = 2


class Readers:
    """A few threads that keep their database connections, so that a read costs a query and no new connection."""

    def __init__(self) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._pool = ThreadPoolExecutor(_THREADS, "reader", initializer=self._remember)

    def _remember(self) -> None:
        mine = connections["default"]
        mine.inc_thread_sharing()  # so that `close` may close it from another thread
        self._connections.append(mine)

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, _query, query, *arguments)

    def close(self) -> None:
        """End the threads and their connections once their present work is done."""
        self._pool.shutdown(wait=True)
        for opened in self._connections:
            opened.close()


def _query(query: Callable[..., Result], *arguments: Any) -> Result:
    try:
        return query(*arguments)
    except DatabaseError:
        connection.close()  # the next look begins with a fresh one
        raise
