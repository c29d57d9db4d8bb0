"""How the web process is started, and limits on what one connection may use of it.

uvicorn bounds neither the head of a request nor what follows its body, and keeps every part of a websocket's message
and every answer to a ping until the other side reads it. Bodies are limited in `request_bodies`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_LONGEST_MESSAGE_BYTES = 4096
"""Viewers send nothing: after a short message the socket closes with the reason, after a longer one with 1009."""


def web_server(*, port: int, host: str = "127.0.0.1", grace_s: int = 2) -> list[str]:
    """The command that serves the site until SIGTERM, then ends within about `grace_s`."""
    return [
        *(sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--host", host, "--port", str(port)),
        *("--http", f"{__name__}:LimitedHttp", "--ws", f"{__name__}:LimitedSocket"),
        *("--ws-max-size", str(_LONGEST_MESSAGE_BYTES), "--ws-per-message-deflate", "false"),
        "--no-proxy-headers",  # webapp.asgi reads them, of the proxies that the settings name
        *("--lifespan", "off", "--timeout-graceful-shutdown", str(grace_s)),
    ]


HEAD_LIMIT_BYTES = 2**16
"""Also the limit of trailers and chunk framing of a body, beyond as many bytes as the body itself has."""
HEAD_WITHIN_S = 30.0
UNREAD_PONGS_BYTES = 2**16
_GOODBYE_WITHIN_S = 2.0


class LimitedHttp(HttpToolsProtocol):
    """Closes connections whose request head is too long or does not arrive in time."""

    _beside_the_body = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._beside_the_body += len(data)
        super().data_received(data)
        if self._beside_the_body > HEAD_LIMIT_BYTES:
            self._hang_up(f"At most {HEAD_LIMIT_BYTES // 1024} kB of headers are taken.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._beside_the_body = 0
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._beside_the_body -= 2 * len(body)
        super().on_body(body)

    def _wait_for_head(self) -> None:
        self._head_is_here()
        words = f"The request's head did not come within {HEAD_WITHIN_S:g} s."
        self._head_timer = self.loop.call_later(HEAD_WITHIN_S, self._hang_up, words)

    def _head_is_here(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self, words: str) -> None:
        if self.transport.is_closing():
            return
        # Before the first request there is no cycle, though uvicorn types it as always there.
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]
            self.send_400_response(words)
        else:
            self.transport.abort()  # an answer is under way: words would fall into its middle


class LimitedSocket(WebSocketsSansIOProtocol):
    """Closes sockets that send fragmented messages, or pings without reading the answers: browsers do neither."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.close_timeout = _GOODBYE_WITHIN_S

    def handle_cont(self, event: Any) -> None:
        self.transport.abort()

    def handle_ping(self) -> None:
        super().handle_ping()
        if self.transport.get_write_buffer_size() > UNREAD_PONGS_BYTES:
            self.transport.abort()
