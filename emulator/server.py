"""The base of both emulators: a server on loopback in its own thread, and the process that runs it."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from emulator.control_api import Actions, ControlApi
from emulator.faults import Faults
from emulator.http import HttpRequest, HttpResponse, HttpServer
from emulator.image import Image

T = TypeVar("T")

_INSIDE_WITHIN_S = 30.0
_TIDY_EVERY_S = 5.0


class Emulator(ABC):
    """Runs from `start` until `stop`. Every process that it starts ends with it, however it ends.

    Its state may be read from any thread. Whatever changes processes goes through `inside`.
    """

    def __init__(self, name: str, faults: Faults[Any], actions: Actions) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix=f"starling-{name}-")
        self.folder = Path(self._temporary.name)
        self.image = Image(self.folder / "image")
        self._control_api = ControlApi(faults, actions)
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"{name}-emulator", daemon=True)

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._port}"

    @property
    def tls(self) -> ssl.SSLContext | None:
        return None

    @abstractmethod
    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the cloud's answer."""

    @abstractmethod
    def close_processes(self) -> None:
        """End every process that the emulator started."""

    def tidy(self) -> None:  # noqa: B027 - not every emulator has something to tidy
        """Called every few seconds."""

    def start(self, port: int = 0) -> Self:
        """Return once it answers at `port` (0: any free one). Raises what kept it from starting."""
        self._port = port
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """End every process and stop answering. Safe to call twice, and without a start."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def inside(self, act: Callable[[], T]) -> T:
        """Return what `act` returns in the emulator's own thread."""
        assert self._loop is not None

        async def run() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(_INSIDE_WITHIN_S)

    def _work(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = HttpServer(self._answer)
        self._port = await server.start(self._port, self.tls)
        self._ready.set()
        try:
            while not self._stop.is_set():
                self.tidy()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TIDY_EVERY_S):
                        await self._stop.wait()
        finally:
            server.close()
            self.close_processes()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.parts[0] == "_emulator":
            return self._control_api.handle(request)
        return await self.answer(request)


def run_until_stopped(emulator: Emulator, port: int, values: Callable[[], dict[str, Any]]) -> None:
    """Run the emulator in this process and print `values` as a line of JSON. It ends with its input, or by a signal."""
    emulator.start(port)
    try:
        stopped = stop_requested()
        print(json.dumps(values()), flush=True)
        threading.Thread(target=_put_at_end_of_input, args=(stopped,), daemon=True).start()
        stopped.get()
    finally:
        emulator.stop()


def _put_at_end_of_input(stopped: SimpleQueue[None]) -> None:
    sys.stdin.read()
    stopped.put(None)


def stop_requested() -> SimpleQueue[None]:
    """Return a queue from which the main thread gets None at SIGTERM and Ctrl-C.

    An event would do but for its lock: a signal that comes while the main thread holds it would wait for itself.
    """
    stopped: SimpleQueue[None] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.put(None))
    return stopped
