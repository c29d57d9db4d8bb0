"""Places for open connections: so many in all, and so many for each client address.

A connection takes a descriptor before it sends a byte, and a process without descriptors serves none. Where all places
are taken, the connection that has waited longest for a request gives way; connections with a request under way, and
sockets of live pages, keep theirs.
"""

from __future__ import annotations

import ipaddress
import logging
import resource
import time
from asyncio import Transport
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from django.conf import settings

log = logging.getLogger(__name__)

RESERVED_DESCRIPTORS = 256
"""For files, the database and Valkey: 16 pages at once have at most five each."""
MOST_BY_DEFAULT = 4096
_WARNED_EVERY_S = 60.0


class SocketRefusal(NamedTuple):
    """A status, and a sentence for the client."""

    status: int
    words: str


class OpenConnections:
    """The connections of one web process, by their transports."""

    def __init__(self, *, most: int, most_an_address: int, proxies: Sequence[str]) -> None:
        self._most = most
        self._most_an_address = most_an_address
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]
        self._addresses: dict[Transport, str] = {}
        self._by_address: Counter[str] = Counter()
        self._waiting: dict[Transport, None] = {}
        self._warned_s = -_WARNED_EVERY_S

    def add(self, transport: Transport, host: str) -> SocketRefusal | None:
        """Give the connection a place, and return None; otherwise why there is none."""
        address = client_address(host)
        if self._by_address[address] >= self._most_an_address and not self._is_proxy(address):
            self._warn(address)
            return SocketRefusal(
                429, f"This address has {self._most_an_address} connections open. Close some."
            )
        if len(self._addresses) >= self._most and not self._make_room():
            return SocketRefusal(503, "All connections of this site are in use. Try again in a few seconds.")
        self._addresses[transport] = address
        self._by_address[address] += 1
        return None

    def set_waiting(self, transport: Transport) -> None:
        """Note that the connection waits for a request from now on."""
        if transport in self._addresses:
            self._waiting.pop(transport, None)
            self._waiting[transport] = None

    def set_busy(self, transport: Transport) -> None:
        """Note that a request is here: the connection keeps its place until it waits again."""
        self._waiting.pop(transport, None)

    def remove(self, transport: Transport) -> None:
        """Free the connection's place, if it has one."""
        self._waiting.pop(transport, None)
        address = self._addresses.pop(transport, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _make_room(self) -> bool:
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self.remove(oldest)
        oldest.abort()
        return True

    def _is_proxy(self, address: str) -> bool:
        try:
            own = ipaddress.ip_network(address)
        except ValueError:  # a socket in the file system has no address
            return True
        return any(own.version == proxy.version and own.subnet_of(proxy) for proxy in self._proxies)  # type: ignore[arg-type]

    def _warn(self, address: str) -> None:
        if time.monotonic() - self._warned_s >= _WARNED_EVERY_S:
            self._warned_s = time.monotonic()
            log.warning(
                "%s has %d connections open and gets no more. If it is a proxy, STARLING_TRUSTED_PROXIES must name it.",
                address,
                self._most_an_address,
            )


def client_address(host: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network that one IPv6 client has to itself."""
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))


def of_this_process() -> OpenConnections:
    """Places as the settings say, below the descriptors that this process may have."""
    descriptors = raise_descriptor_limit()
    room = max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2)
    most = min(settings.STARLING_MAX_CONNECTIONS or MOST_BY_DEFAULT, room)
    most_an_address = settings.STARLING_MAX_CONNECTIONS_AN_ADDRESS or max(1, most // 4)
    return OpenConnections(
        most=most, most_an_address=most_an_address, proxies=settings.STARLING_TRUSTED_PROXIES
    )


def raise_descriptor_limit() -> int:
    """Let this process open as many files and sockets as the system allows it; returns how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS names a hard limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    granted, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return granted if granted != resource.RLIM_INFINITY else 2**20
