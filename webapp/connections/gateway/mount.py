"""The gateway in the web process: `/actor/v1/`, before any page, session or middleware."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from cloud.actor.protocol import LEASE
from cloud.platforms.gateway.asgi import GatewayApp, Receive, Scope, Send
from cloud.platforms.gateway.waiters import Waiters
from webapp.connections.gateway.services import OFFERS
from webapp.connections.gateway.store import DatabaseStore
from webapp.database.readers import Readers
from webapp.doorbell_listener import listen_to_doorbells

PREFIX = LEASE.removesuffix("lease")


class _LoopGateway:
    """The gateway of one event loop: waiting pullers, database threads, and a subscription to the doorbell."""

    def __init__(self) -> None:
        self._readers = Readers()
        self.waiters = Waiters(DatabaseStore(), self._readers.read)
        bells = listen_to_doorbells(OFFERS, lambda box, _: self.waiters.ring(box))
        self._listener = asyncio.get_running_loop().create_task(bells)

    async def close(self) -> None:
        self._listener.cancel()
        await asyncio.to_thread(self._readers.close)


_gateways: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopGateway] = WeakKeyDictionary()


def loop_gateway() -> _LoopGateway:
    """The gateway of the running loop. A web process has one."""
    loop = asyncio.get_running_loop()
    if loop not in _gateways:
        _gateways[loop] = _LoopGateway()
    return _gateways[loop]


_endpoint = GatewayApp(lambda: loop_gateway().waiters)


def with_gateway(pages: object) -> object:
    """An ASGI application that sends pullers to the gateway and all other requests to the pages."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(PREFIX):
            await _endpoint(scope, receive, send)
        else:
            await pages(scope, receive, send)  # type: ignore[operator]

    return application
