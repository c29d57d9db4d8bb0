"""A gateway over a mailbox in memory, served from a thread of this process: for runs without the web application."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import uvicorn

from cloud.gateway.asgi import Door, Receive, Scope, Send
from cloud.gateway.waiters import Desk
from cloud.mailbox import MemoryMailbox

Result = TypeVar("Result")
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
_END_WITHIN_S = 10.0


async def _at_once(work: Callable[..., Result], *arguments: object) -> Result:
    # A mailbox in memory holds its lock for moments only.
    return work(*arguments)


def door_of(mailbox: MemoryMailbox) -> Door:
    """The door of this one mailbox, which rings its bell."""
    desks: dict[asyncio.AbstractEventLoop, Desk] = {}

    def desk() -> Desk:
        loop = asyncio.get_running_loop()
        if loop not in desks:
            made = desks[loop] = Desk(mailbox, _at_once)
            mailbox.on_offer(lambda: _ring(loop, made, mailbox.box))
        return desks[loop]

    return Door(desk)


def _ring(loop: asyncio.AbstractEventLoop, desk: Desk, box: str) -> None:
    # A mailbox may be closed after its gateway.
    if not loop.is_closed():
        loop.call_soon_threadsafe(desk.ring, box)


class _Server(uvicorn.Server):
    """Signals belong to the process that this is a thread of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served(
    mailbox: MemoryMailbox,
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    around: Callable[[Application], Application] = lambda door: door,
) -> Iterator[str]:
    """The gateway's address on this machine while the block runs; https with a context for that.

    `around` may put something between pullers and the door.
    """
    config = uvicorn.Config(
        around(door_of(mailbox)),
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
    # Who comes before the server does waits in the queue instead of being refused.
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
