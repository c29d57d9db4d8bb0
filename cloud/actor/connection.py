"""A puller's connection to its gateway: HTTPS outwards, kept open, without redirects, with limited answers."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
_CONNECT_S = 20.0


class GatewayUnreachable(OSError):
    """No answer, or one that says "not now". The request may be repeated."""


class RequestRefused(Exception):
    """The gateway refused the request, and would refuse a repetition."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class GatewayConnection:
    """Used by one thread. Raises ValueError for an address that is not https, unless it is on this machine."""

    def __init__(self, address: str, token: str, ca_file: str | None = None) -> None:
        parts = urlsplit(address)
        secure = parts.scheme == "https"
        if not parts.hostname or not (secure or (parts.scheme == "http" and parts.hostname in _HERE)):
            raise ValueError(f"the gateway must be an https:// address, not {address!r}")
        if parts.username or parts.query or parts.fragment:
            raise ValueError(f"{address!r} holds more than a host and a path")
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "starling-puller/1"}
        self._connect = self._connector(secure, parts.hostname, parts.port, ca_file)
        self._connection: http.client.HTTPConnection | None = None

    @staticmethod
    def _connector(
        secure: bool, host: str, port: int | None, ca_file: str | None
    ) -> Callable[[], http.client.HTTPConnection]:
        if not secure:
            return lambda: http.client.HTTPConnection(host, port, timeout=_CONNECT_S)
        context = ssl.create_default_context(cafile=ca_file)
        return lambda: http.client.HTTPSConnection(host, port, timeout=_CONNECT_S, context=context)

    def request(
        self,
        method: Literal["GET", "POST"],
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float,
        most_bytes: int = 2**20,
    ) -> bytes:
        """Return the body of a 200. Raises Unreachable or Refused.

        A request on a connection that has been closed is repeated on a new one: all requests may be repeated.
        """
        kept = self._connection is not None
        try:
            return self._send(method, path, body, timeout_s, most_bytes)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if isinstance(error, GatewayUnreachable):
                raise
            if not kept or isinstance(error, TimeoutError):
                raise GatewayUnreachable(_words(error)) from None
        try:
            return self._send(method, path, body, timeout_s, most_bytes)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise GatewayUnreachable(_words(error)) from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, path: str, body: bytes | None, timeout_s: float, most_bytes: int) -> bytes:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.connect()
        self._connection.sock.settimeout(timeout_s)
        self._connection.request(method, self._path + path, body=body, headers=self._headers)
        answer = self._connection.getresponse()
        # The time limit is for the whole answer, however slowly it arrives.
        data = _read(answer, most_bytes, time.monotonic() + timeout_s)
        if answer.status == 200:
            return data
        words = f"{answer.status} {answer.reason}"
        if answer.status in (408, 429) or answer.status >= 500:
            raise GatewayUnreachable(words)
        raise RequestRefused(answer.status, words)


def _read(answer: http.client.HTTPResponse, most_bytes: int, end_s: float) -> bytes:
    pieces: list[bytes] = []
    held = 0
    while piece := answer.read(min(2**16, most_bytes + 1 - held)):
        pieces.append(piece)
        held += len(piece)
        if held > most_bytes:
            raise http.client.HTTPException("the answer is too large")
        if time.monotonic() > end_s:
            raise TimeoutError("the answer is too slow")
    if answer.length:  # the connection broke off within the body
        raise http.client.HTTPException("the answer broke off")
    return b"".join(pieces)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
