"""A small HTTP/1.1 server for loopback: whole requests in, whole responses out, thousands of them waiting at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

HEADER_LIMIT_BYTES = 64 * 2**10
BODY_LIMIT_BYTES = 256 * 2**20


@dataclass(frozen=True)
class HttpRequest:
    """`target` is as it was sent; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @cached_property
    def raw_path(self) -> str:
        return self.target.partition("?")[0]

    @cached_property
    def parts(self) -> list[str]:
        """The pieces of the path, unquoted."""
        return [unquote(piece) for piece in self.raw_path.strip("/").split("/")]

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))


@dataclass(frozen=True)
class HttpResponse:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def json_response(status: int, document: object, **headers: str) -> HttpResponse:
    kind = {"Content-Type": "application/json; charset=utf-8", **headers}
    return HttpResponse(status, json.dumps(document).encode(), kind)


class Hangup(Exception):
    """Raised to close the connection without an answer, as a broken network does."""


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class HttpServer:
    """One address on loopback. Everything runs in the event loop that called `start`."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> int:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", port, limit=HEADER_LIMIT_BYTES, backlog=4096, ssl=tls
        )
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _read(reader, writer)) is not None:
                response = await self._handler(request)
                await _write(writer, response, head=request.method == "HEAD")
        except (Hangup, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        except asyncio.CancelledError:
            # The server is closing, so the connection ends without TLS's closing message.
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            with contextlib.suppress(Exception):
                writer.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as nothing:
        if nothing.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    if target.lower().startswith("http://"):
        # As programs send it to a proxy. The host in it replaces the header.
        headers["host"], slash, path = target[len("http://") :].partition("/")
        target = slash + path
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return HttpRequest(method, target, headers, await _body(reader, headers))


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= BODY_LIMIT_BYTES:
            raise ValueError("too large")
        return await reader.readexactly(length) if length else b""
    pieces: list[bytes] = []
    total = 0
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        total += size
        if total > BODY_LIMIT_BYTES:
            raise ValueError("too large")
        piece = await reader.readexactly(size + 2)
        if size == 0:
            return b"".join(pieces)
        pieces.append(piece[:-2])


async def _write(writer: asyncio.StreamWriter, response: HttpResponse, *, head: bool) -> None:
    status = response.status
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Status"
    headers = {"Content-Length": str(len(response.body)), **response.headers}
    if status == HTTPStatus.NO_CONTENT:
        headers.pop("Content-Length")
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    # Header and body are one write: the second of two would wait for the first one's acknowledgement.
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if head else response.body))
    await writer.drain()
