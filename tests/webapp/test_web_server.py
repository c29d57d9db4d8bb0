"""One connection takes little memory of the web process and no more time than it needs, whatever it sends."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest

from tests.limited_site import UPGRADE, served
from webapp.web_server import web_server

pytestmark = pytest.mark.asyncio
_SENT_BYTES = 48 * 2**20
_HELD_BYTES = 4 * 2**20


async def _sent(head: bytes, pieces: Iterable[bytes], *, read_head: bool = False) -> tuple[int, int]:
    """How much was sent before the site hung up, and the most memory held meanwhile. What comes back is not read."""
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.transport.set_write_buffer_limits(2**16)
        writer.write(head)
        if read_head:
            await reader.readuntil(b"\r\n\r\n")
        gc.collect()
        tracemalloc.start()
        sent = 0
        try:
            for piece in pieces:
                writer.write(piece)
                sent += len(piece)
                await writer.drain()
                if reader.at_eof() or reader.exception() is not None:
                    break
            _, most_held = tracemalloc.get_traced_memory()
        except ConnectionError:
            _, most_held = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            writer.transport.abort()
        return sent, most_held


def _many(piece: bytes) -> Iterable[bytes]:
    large = piece * (2**16 // len(piece))
    return (large for _ in range(_SENT_BYTES // len(large)))


_CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-Many: a\r\n", id="headers"),
        pytest.param(_CHUNKED + b"0\r\n", b"X-After: a\r\n", id="trailers"),
        pytest.param(b"GET /", b"a", id="address", marks=pytest.mark.slow),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ", b"a", id="header", marks=pytest.mark.slow),
        pytest.param(_CHUNKED + b"1;", b"extension=a", id="extensions", marks=pytest.mark.slow),
    ],
)
async def test_what_is_beside_a_body_is_never_held_whole(head: bytes, piece: bytes) -> None:
    sent, most_held = await _sent(head, _many(piece))
    assert sent < _SENT_BYTES
    assert most_held < _HELD_BYTES


def _frame(opcode: int, payload: bytes, *, last: bool = True) -> bytes:
    """A frame as browsers send it, masked with zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([opcode | (0x80 if last else 0)]) + length + b"\0" * 4 + payload


_TEXT, _MORE, _PING = 1, 0, 9
_BEGUN = _frame(_TEXT, b"", last=False)


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        pytest.param(b"", _frame(_TEXT, b"a" * 5000), id="a long message"),
        pytest.param(b"", _frame(_PING, b"a" * 125), id="pings"),
        pytest.param(_BEGUN, _frame(_MORE, b"", last=False), id="empty parts", marks=pytest.mark.slow),
        pytest.param(_BEGUN, _frame(_MORE, b"a" * 4000, last=False), id="long parts", marks=pytest.mark.slow),
    ],
)
async def test_a_socket_holds_nothing_of_what_is_said_to_it(first: bytes, piece: bytes) -> None:
    sent, most_held = await _sent(UPGRADE, [first, *_many(piece)], read_head=True)
    assert sent < _SENT_BYTES
    assert most_held < _HELD_BYTES


async def test_a_head_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr("webapp.web_server.HEAD_WITHIN_S", 0.05)
    settings.STARLING_SILENT_CONNECTION_S = 0.05
    for begun in (b"", b"GET / HT"):
        async with served() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            assert b"did not come" in await reader.read()
            writer.close()


async def test_ordinary_requests_and_bodies_in_chunks_pass() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
        chunked = (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 2048 + b"0\r\n\r\n"
        )
        large_head = b"GET / HTTP/1.1\r\nHost: x\r\nCookie: " + b"c" * 30_000 + b"\r\n\r\n"
        for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", chunked, large_head, chunked, large_head):
            writer.write(request)
            await writer.drain()
            answer = await reader.readuntil(b"ok")
            assert answer.startswith(b"HTTP/1.1 200 OK")
        writer.close()


async def test_the_site_is_served_with_these_limits() -> None:
    command = web_server(port=1)
    for flag, value in {
        "--http": "webapp.web_server:LimitedHttp",
        "--ws": "webapp.web_server:LimitedSocket",
        "--ws-max-size": "4096",
    }.items():
        assert command[command.index(flag) + 1] == value
