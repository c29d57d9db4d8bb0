"""How the web process is started, and limits on what one connection may use of it.

uvicorn bounds neither the number of connections nor the head of a request nor what follows its body, and keeps every
part of a websocket's message and every answer to a ping until the other side reads it. Bodies are limited in
`request_bodies`.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from webapp.processes.open_connections import OpenConnections, of_this_process

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
UNREAD_WITHIN_S = 60.0
"""A client that takes nothing of its answer for so long is disconnected."""
UNREAD_PONGS_BYTES = 2**16
_GOODBYE_WITHIN_S = 2.0
_open: WeakKeyDictionary[ServerState, OpenConnections] = WeakKeyDictionary()


def _open_connections(server: ServerState) -> OpenConnections:
    if server not in _open:
        _open[server] = of_this_process()
    return _open[server]


class LimitedHttp(HttpToolsProtocol):
    """Refuses connections for which there is no place, and closes those whose request head is too long or late."""

    _beside_the_body = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._open = _open_connections(self.server_state)
        refusal = self._open.add(transport, self.client[0] if self.client else "")
        if refusal is not None:
            self._answer_and_close(refusal.status, refusal.words)
            return
        _end_if_unread(transport)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        self._open.remove(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._beside_the_body += len(data)
        super().data_received(data)
        if self._beside_the_body > HEAD_LIMIT_BYTES:
            self._hang_up(431, f"At most {HEAD_LIMIT_BYTES // 1024} kB of headers are taken.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._beside_the_body = 0
        self._wait_for_head(HEAD_WITHIN_S)

    def on_headers_complete(self) -> None:
        self._head_is_here()
        self._open.set_busy(self.transport)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._beside_the_body -= 2 * len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        last = not self.pipeline
        super().on_response_complete()
        if last and not self.transport.is_closing():
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        """Wait for its first byte. What else may come, line ends and the rest of an answered body, ends no wait."""
        self._open.set_waiting(self.transport)
        self._wait_for_head(settings.STARLING_SILENT_CONNECTION_S)

    def _wait_for_head(self, within_s: float) -> None:
        self._head_is_here()
        words = f"The request's head did not come within {within_s:g} s."
        self._head_timer = self.loop.call_later(within_s, self._hang_up, 408, words)

    def _head_is_here(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self, status: int, words: str) -> None:
        if self.transport.is_closing():
            return
        # Before the first request there is no cycle, though uvicorn types it as always there.
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]
            self._answer_and_close(status, words)
        else:
            self.transport.abort()  # an answer is under way: words would fall into its middle

    def _answer_and_close(self, status: int, words: str) -> None:
        text = words.encode()
        head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head % len(text) + text)
        self.transport.close()


class LimitedSocket(WebSocketsSansIOProtocol):
    """Closes sockets that send fragmented messages, or pings without reading the answers: browsers do neither.

    The socket has the place of the connection that it was, until it ends.
    """

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        self.close_timeout = _GOODBYE_WITHIN_S
        self._open = _open_connections(server_state)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.remove(self.transport)
        super().connection_lost(exc)

    def handle_cont(self, event: Any) -> None:
        self.transport.abort()

    def handle_ping(self) -> None:
        super().handle_ping()
        if self.transport.get_write_buffer_size() > UNREAD_PONGS_BYTES:
            self.transport.abort()


def _end_if_unread(transport: asyncio.Transport) -> None:
    """Have the system end the connection if its other side takes nothing for long. Linux alone can do that."""
    own = transport.get_extra_info("socket")
    if (
        own is not None
        and own.family in (socket.AF_INET, socket.AF_INET6)
        and hasattr(socket, "TCP_USER_TIMEOUT")
    ):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_WITHIN_S * 1000))
