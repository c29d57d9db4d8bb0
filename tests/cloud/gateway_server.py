"""A gateway over a mailbox in memory, served by a thread of this process."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import uvicorn

from cloud.platforms.gateway.asgi import GatewayApp, Receive, Scope, Send
from cloud.platforms.gateway.waiters import Waiters
from tests.cloud.memory_mailbox import MemoryMailbox

Result = TypeVar("Result")
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
_END_WITHIN_S = 10.0


async def _at_once(work: Callable[..., Result], *arguments: object) -> Result:
    # A mailbox in memory holds its lock only for moments.
    return work(*arguments)


def app_of(mailbox: MemoryMailbox) -> GatewayApp:
    """Return the gateway of one mailbox, which wakes it when it has new calls."""
    by_loop: dict[asyncio.AbstractEventLoop, Waiters] = {}

    def waiters() -> Waiters:
        loop = asyncio.get_running_loop()
        if loop not in by_loop:
            fresh = by_loop[loop] = Waiters(mailbox, _at_once)
            mailbox.on_offer(lambda: _ring(loop, fresh, mailbox.box))
        return by_loop[loop]

    return GatewayApp(waiters)


def _ring(loop: asyncio.AbstractEventLoop, waiters: Waiters, box: str) -> None:
    # A mailbox may be closed after its gateway.
    if not loop.is_closed():
        loop.call_soon_threadsafe(waiters.ring, box)


class _Server(uvicorn.Server):
    """Handles no signals: they belong to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served(
    mailbox: MemoryMailbox,
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    around: Callable[[Application], Application] = lambda app: app,
) -> Iterator[str]:
    """Yield the gateway's address on this machine, which it serves while the block runs; https with `tls`.

    `around` may wrap the application.
    """
    config = uvicorn.Config(
        around(app_of(mailbox)),
        host="127.0.0.1",
        port=port,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    config.load()
    config.ssl = tls
    server = _Server(config)
    listening = config.bind_socket()
    # A puller that connects before the server is ready waits instead of being refused.
    listening.listen()
    thread = threading.Thread(target=server.run, args=([listening],), name="gateway", daemon=True)
    thread.start()
    try:
        scheme = "https" if tls else "http"
        yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_END_WITHIN_S)
        listening.close()
