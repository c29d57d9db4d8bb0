"""A network of our own that nothing from outside may reach: a listener that counts, and what this process opens."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

_EVENTS = ("open", "socket.connect")


class _Watch:
    """What was opened while it is on: paths of files, and addresses of sockets."""

    def __init__(self) -> None:
        self.opened: list[str] | None = None
        self.connected: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.opened is None or event not in _EVENTS:
            return
        if event == "open":
            self.opened.append(str(arguments[0]))
        else:
            address = arguments[1]
            self.connected.append(str(address[0] if isinstance(address, tuple) else address))


_watch = _Watch()
sys.addaudithook(_watch)  # for good: Python takes none away, so that this one sleeps between tests


class OwnNetwork:
    """Listens on this machine, by IPv4 and IPv6, on one port."""

    def __init__(self, listeners: list[socket.socket]) -> None:
        self._listeners = listeners
        self.port = int(listeners[0].getsockname()[1])

    def connections(self) -> int:
        """How many came since this was asked last. The kernel has taken each before its sender goes on."""
        found = 0
        for listener in self._listeners:
            while True:
                try:
                    taken, _ = listener.accept()
                except BlockingIOError:
                    break
                taken.close()
                found += 1
        return found

    @property
    def opened(self) -> list[str]:
        """Paths that were asked of the operating system, whether it gave them or not."""
        return _watch.opened or []

    @property
    def connected(self) -> list[str]:
        """Addresses that a socket was to be connected with."""
        return _watch.connected


@contextmanager
def own_network() -> Iterator[OwnNetwork]:
    """The network while the block runs."""
    with ExitStack() as stack:
        first = stack.enter_context(_listener(socket.AF_INET, "127.0.0.1", 0))
        listeners = [first]
        if socket.has_ipv6:
            try:
                listeners.append(
                    stack.enter_context(_listener(socket.AF_INET6, "::1", first.getsockname()[1]))
                )
            except OSError:
                pass  # a machine without IPv6, or the port is taken there: IPv4 listens
        _watch.opened, _watch.connected = [], []
        try:
            yield OwnNetwork(listeners)
        finally:
            _watch.opened = None


def _listener(family: int, host: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.bind((host, port))
        listener.listen(64)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
