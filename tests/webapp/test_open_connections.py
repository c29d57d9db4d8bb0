"""Clients that hold connections open, silent, slow or many, take places from themselves and from no one else."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest

from rig.servers import ROOT, reserved_port, wait_until
from tests.limited_site import EARLY, LARGE, NEVER, PAGE, UPGRADE, served
from webapp.processes.open_connections import client_address
from webapp.web_server import web_server

_US, _ATTACKER = "127.0.0.1", "127.0.0.2"
_FIRST_BYTE_WITHIN_S = 0.15
_opened: list[Client] = []


class Client:
    """A connection from an address of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int, address: str, first: bytes = b"") -> Client:
        """Open a connection. `first` has been sent when the site, which shares this thread, notices it."""
        connection = socket.create_connection((_US, port), timeout=20, source_address=(address, 0))
        connection.sendall(first)
        connection.setblocking(False)
        _opened.append(cls(*await asyncio.open_connection(sock=connection)))
        return _opened[-1]

    async def ask(self, request: bytes) -> bytes:
        self.send(request)
        return await self.answer()

    async def answer(self, end: bytes = b"ok") -> bytes:
        return await asyncio.wait_for(self._reader.readuntil(end), 20)

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def rest(self) -> bytes:
        """Return what comes until the site closes the connection."""
        try:
            return await asyncio.wait_for(self._reader.read(), 20)
        except ConnectionError:
            return b""

    async def drip(self, data: bytes) -> None:
        """Send a byte every 20 ms until the site closes the connection. Its last words may be lost by that."""
        said = asyncio.ensure_future(self.rest())
        for byte in data:
            if said.done():
                break
            self.send(bytes([byte]))
            await asyncio.sleep(0.02)
        assert said.done(), "all of it was taken"

    def read_nothing(self) -> None:
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def _served() -> AsyncIterator[int]:
    """The port of a site; what was opened to it is closed at its end."""
    async with served() as port:
        try:
            yield port
        finally:
            while _opened:
                _opened.pop().close()
            await asyncio.sleep(0)


async def _page(port: int, address: str = _US) -> bytes:
    """Return the answer to a request on a connection of its own."""
    client = await Client.open(port, address)
    try:
        return await client.ask(PAGE)
    finally:
        client.close()


async def _silent(port: int, address: str, count: int) -> list[Client]:
    clients = [await Client.open(port, address) for _ in range(count)]
    await asyncio.sleep(0.05)
    return clients


@pytest.fixture
def limits(settings: Any) -> Any:
    """12 places, 4 an address, and much time."""
    settings.STARLING_MAX_CONNECTIONS = 12
    settings.STARLING_MAX_CONNECTIONS_AN_ADDRESS = 4
    settings.STARLING_SILENT_CONNECTION_S = 60
    return settings


@pytest.mark.asyncio
async def test_an_address_whose_places_are_taken_gets_no_more_and_others_are_served(limits: Any) -> None:
    async with _served() as port:
        held = await _silent(port, _ATTACKER, 4)
        refused = await (await Client.open(port, _ATTACKER)).rest()
        assert refused.startswith(b"HTTP/1.1 429 ")
        assert b"has 4 connections open" in refused
        assert b"200 OK" in await _page(port)
        held.pop().close()
        await asyncio.sleep(0.05)
        assert b"200 OK" in await _page(port, _ATTACKER)


@pytest.mark.asyncio
async def test_where_all_places_are_taken_the_longest_silent_connection_gives_way(limits: Any) -> None:
    async with _served() as port:
        held = [one for last in range(2, 5) for one in await _silent(port, f"127.0.0.{last}", 4)]
        for _ in range(5):
            assert b"200 OK" in await _page(port)
        assert await held[0].rest() == b""
        assert b"200 OK" in await held[-1].ask(PAGE)


@pytest.mark.asyncio
async def test_connections_with_a_request_under_way_keep_their_places(limits: Any) -> None:
    async with _served() as port:
        held = [one for last in range(2, 5) for one in await _silent(port, f"127.0.0.{last}", 4)]
        for one in held:
            one.send(NEVER)
        await asyncio.sleep(0.05)
        assert (await (await Client.open(port, _US)).rest()).startswith(b"HTTP/1.1 503 ")
        held[0].close()
        await asyncio.sleep(0.05)
        assert b"200 OK" in await _page(port)


@pytest.mark.asyncio
async def test_a_proxy_has_the_places_of_all_its_clients(limits: Any) -> None:
    limits.STARLING_TRUSTED_PROXIES = ["127.0.0.2/31"]
    async with _served() as port:
        held = await _silent(port, _ATTACKER, 11)
        assert b"200 OK" in await held[-1].ask(PAGE)
        assert b"200 OK" in await _page(port)


@pytest.mark.asyncio
async def test_what_is_no_request_does_not_keep_a_connection(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.STARLING_SILENT_CONNECTION_S = _FIRST_BYTE_WITHIN_S
    monkeypatch.setattr("webapp.web_server.HEAD_WITHIN_S", 0.3)
    limits.STARLING_MAX_CONNECTIONS_AN_ADDRESS = 12
    async with _served() as port:
        again = await Client.open(port, _ATTACKER, PAGE)
        early = await Client.open(port, _ATTACKER, EARLY)
        assert b"200 OK" in await again.answer()
        assert b"200 OK" in await early.answer()
        silent, blank, slow = await _silent(port, _ATTACKER, 3)
        words, *_ = await asyncio.gather(
            silent.rest(),
            blank.drip(b"\r\n" * 200),
            slow.drip(b"GET / HTTP/1.1\r\nX-Slow: " + b"a" * 400),
            again.drip(b"\r\n" * 200),
            early.drip(b"a" * 400),
        )
        assert words.startswith(b"HTTP/1.1 408 ")


@pytest.mark.asyncio
async def test_a_quiet_socket_and_a_quiet_stream_stay_and_count(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.STARLING_SILENT_CONNECTION_S = _FIRST_BYTE_WITHIN_S
    monkeypatch.setattr("webapp.web_server.HEAD_WITHIN_S", _FIRST_BYTE_WITHIN_S)
    limits.STARLING_MAX_CONNECTIONS_AN_ADDRESS = 2
    async with _served() as port:
        live = await Client.open(port, _ATTACKER, UPGRADE)
        stream = await Client.open(port, _ATTACKER, NEVER)
        assert b"101 Switching" in await live.answer(b"\r\n\r\n")
        closed = [asyncio.ensure_future(one.rest()) for one in (live, stream)]
        await asyncio.sleep(4 * _FIRST_BYTE_WITHIN_S)
        assert not any(one.done() for one in closed)
        assert (await (await Client.open(port, _ATTACKER)).rest()).startswith(b"HTTP/1.1 429 ")
        live.close()
        await asyncio.sleep(0.05)
        assert b"200 OK" in await _page(port, _ATTACKER)
        stream.close()
        await asyncio.gather(*closed)


@pytest.mark.asyncio
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux ends such connections")
async def test_an_answer_that_is_not_read_does_not_keep_a_connection(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.web_server.UNREAD_WITHIN_S", 0.3)
    limits.STARLING_MAX_CONNECTIONS_AN_ADDRESS = 1
    async with _served() as port:
        client = await Client.open(port, _ATTACKER)
        client.read_nothing()
        client.send(LARGE)
        async with asyncio.timeout(20):
            while not await _is_served(port):
                await asyncio.sleep(0.1)


async def _is_served(port: int) -> bool:
    try:
        return b"200 OK" in await _page(port, _ATTACKER)
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


def test_an_ipv6_network_of_one_client_counts_as_one_address() -> None:
    assert client_address("2001:db8::1") == client_address("2001:db8::ffff:1") == "2001:db8::/64"
    assert client_address("2001:db8:0:1::1") != client_address("2001:db8::1")
    assert client_address("::ffff:192.0.2.1") == client_address("192.0.2.1") == "192.0.2.1"
    assert client_address("fe80::1%eth0") == "fe80::/64"


def test_a_process_of_few_descriptors_serves_beside_more_silent_connections_than_it_has(
    tmp_path: Any,
) -> None:
    port = reserved_port()
    command = " ".join(web_server(port=port)).replace("webapp.asgi:application", "tests.limited_site:site")
    limited = f"ulimit -Sn 80 && ulimit -Hn 160 && exec {command}"
    environment = {**os.environ, "STARLING_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    with ExitStack() as stack:
        process = subprocess.Popen(["bash", "-c", limited], cwd=ROOT, env=environment)
        stack.callback(process.wait)
        stack.callback(process.terminate)

        def opened(address: str) -> socket.socket:
            connection = socket.create_connection(
                ("127.0.0.1", port), timeout=20, source_address=(address, 0)
            )
            return stack.enter_context(connection)

        def answer() -> bytes:
            with opened(_US) as connection:
                connection.sendall(PAGE)
                return connection.recv(2**16)

        def is_up() -> bool:
            try:
                return b"200 OK" in answer()
            except ConnectionRefusedError:
                return False

        wait_until(is_up, within_s=60, what="the site is up")
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] == 160
        for _ in range(30):
            for last in range(2, 10):
                opened(f"127.0.0.{last}")
            assert b"200 OK" in answer()
