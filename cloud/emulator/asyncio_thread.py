"""A program of asyncio in a thread of its own, beside whoever started it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Serve = Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]]
"""Told how to say that it is ready, and what is set once it is to end."""

_PATIENCE_S = 30.0


class OwnThread:
    """From `start`, which waits until the program is ready, to `stop`, which waits until it has ended."""

    def __init__(self, name: str, serve: Serve) -> None:
        self._serve = serve
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Raises what the program raised, if it ended before it was ready."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Safe to call twice, and where it never started."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def inside(self, act: Callable[[], T]) -> T:
        """Do something in the program's own thread, and wait for it."""
        assert self._loop is not None

        async def doing() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(doing(), self._loop).result(_PATIENCE_S)

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._serve(self._ready.set, self._stop)
