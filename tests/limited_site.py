"""A site of one page and one socket behind the limits of connections, without Django's pages."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from webapp.web_server import LimitedHttp, LimitedSocket

PAGE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
EARLY = b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
"""Its answer comes before its body."""
NEVER = b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: " + base64.b64encode(b"0" * 16) + b"\r\n\r\n"
)


async def site(scope: Any, receive: Any, send: Any) -> None:
    """Takes a body to its end, or a socket to its first message. Its addresses are named by the requests above."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        while (await receive())["type"] == "websocket.connect":
            pass
        return
    while scope["path"] != "/early":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if scope["path"] != "/never" and not message["more_body"]:
            break
    body = b"ok" if scope["path"] != "/large" else bytes(2**25)
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """The port of that site."""
    config = Config(
        site,
        http=LimitedHttp,
        ws=LimitedSocket,
        ws_max_size=4096,
        ws_per_message_deflate=False,
        lifespan="off",
    )
    config.load()
    state = ServerState()
    made = lambda: LimitedHttp(config, state, {})  # noqa: E731
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await server.wait_closed()
