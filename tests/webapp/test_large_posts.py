"""A gigabyte from no one, to any address, in chunks or not: little of it is taken, and others notice nothing."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.memory import most_memory_mb, web_process

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.slow]

_GIGABYTE = 2**30
_PIECE = b"x" * 2**20
_ADDRESSES = (
    "/",
    "/accounts/login/",
    "/p/nobody/reports/bills/new/",
    "/api/v1/projects/nobody/bills",
    "/api/v1/projects",
    "/actor/v1/lease",
    "/actor/v1/result",
    "/nowhere",
)


class Poster(threading.Thread):
    """Someone without cookies or tokens who posts a gigabyte."""

    def __init__(self, host: str, address: str, *, chunked: bool) -> None:
        super().__init__(daemon=True)
        self._host, self._address, self._chunked = host, address, chunked
        self.answer = b""
        self.sent = 0
        self.refused_after_s = float("inf")
        self.began_s = 0.0

    def run(self) -> None:
        name, port = self._host.split(":")
        with closing(socket.create_connection((name, int(port)), timeout=60)) as line:
            length = "Transfer-Encoding: chunked" if self._chunked else f"Content-Length: {_GIGABYTE}"
            line.sendall(f"POST {self._address} HTTP/1.1\r\nHost: {self._host}\r\n{length}\r\n\r\n".encode())
            listening = threading.Thread(target=self._listen, args=[line], daemon=True)
            self.began_s = time.monotonic()
            listening.start()
            framed = b"100000\r\n" + _PIECE + b"\r\n" if self._chunked else _PIECE
            with suppress(OSError):
                while self.sent < _GIGABYTE:
                    line.sendall(framed)
                    self.sent += len(_PIECE)
            listening.join(60)

    def _listen(self, line: socket.socket) -> None:
        with suppress(OSError):
            while piece := line.recv(2**16):
                if not self.answer:
                    self.refused_after_s = time.monotonic() - self.began_s
                self.answer += piece


def _unnamed_bytes(process: Path) -> int:
    found = 0
    for descriptor in (process / "fd").iterdir():
        with suppress(OSError):
            if os.readlink(descriptor).endswith("(deleted)"):
                found += os.stat(descriptor).st_size
    return found


def test_a_gigabyte_from_a_stranger_is_neither_kept_nor_felt(live_site: str) -> None:
    host = urlsplit(live_site).netloc
    process = web_process(int(host.split(":")[1]))
    waits: list[float] = []

    def ask() -> None:
        with closing(http.client.HTTPConnection(host, timeout=60)) as connection:
            began_s = time.monotonic()
            connection.request("GET", "/accounts/login/")
            assert connection.getresponse().read()
            waits.append(time.monotonic() - began_s)

    for _ in range(20):  # what is loaded with the first pages is no answer to anybody
        ask()
    waits.clear()
    memory_before_mb = most_memory_mb(process)
    posters = [Poster(host, address, chunked=chunked) for address in _ADDRESSES for chunked in (False, True)]
    for one in posters:
        one.start()
    most_on_disk = 0
    while any(one.is_alive() for one in posters) or len(waits) < 200:
        ask()
        most_on_disk = max(most_on_disk, _unnamed_bytes(process))
    held_mb = most_memory_mb(process) - memory_before_mb
    p99_s = sorted(waits)[int(len(waits) * 0.99)]
    slowest_s = max(one.refused_after_s for one in posters)
    print(
        f"on disk {most_on_disk} B, memory +{held_mb:.1f} MB, others' p99 {p99_s:.3f} s of {len(waits)},"
        f" slowest refusal {slowest_s:.2f} s, most sent {max(one.sent for one in posters) / 2**20:.0f} MB"
    )
    for one in posters:
        assert one.answer.split(b" ", 2)[1] in (b"413", b"401", b"404"), (one._address, one.answer[:100])
    assert most_on_disk <= 2**20
    assert held_mb < 2 * len(posters) + 32
    assert slowest_s < 2
    assert p99_s < 1
