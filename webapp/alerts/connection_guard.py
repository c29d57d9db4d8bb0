"""Limits what a library may open while it sends a message: connections to one service's hosts, and no files.

Python reports every socket and file to its audit hooks before it opens them, and a hook that raises prevents it. So the
limit holds anywhere in the library, for names and numbers, and for the address that a name resolves to at that
moment. It applies to the calling thread only.
"""

from __future__ import annotations

import ipaddress
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from webapp.http import safe_http

_thread = threading.local()
_hook_lock = threading.Lock()
_hook_added = False


class NotAllowed(PermissionError):
    """The sender may not open this connection or file; the text says why."""


@dataclass(frozen=True)
class Guard:
    """The hosts and port that the thread may reach, and why connections were refused."""

    hosts: frozenset[str] = frozenset()
    port: int = 443
    private_too: bool = False
    refusals: list[str] = field(default_factory=list)

    def refuse(self, words: str) -> None:
        self.refusals.append(words)
        raise NotAllowed(words)


@contextmanager
def limit_to(guard: Guard) -> Iterator[Guard]:
    """While the block runs, this thread can open only the guard's hosts and port, and files of installed software.

    Anything else raises NotAllowed. Libraries hide that error, so `refusals` says why a connection was refused."""
    _add_hook()
    before = getattr(_thread, "guard", None)
    _thread.guard = guard
    try:
        yield guard
    finally:
        _thread.guard = before


def _add_hook() -> None:
    global _hook_added
    with _hook_lock:
        if not _hook_added:
            sys.addaudithook(_on_event)
            _hook_added = True


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    guard: Guard | None = getattr(_thread, "guard", None)
    if guard is not None and event in _JUDGES:
        _JUDGES[event](guard, arguments)


def _judge_name(guard: Guard, arguments: tuple[Any, ...]) -> None:
    name = arguments[0]
    host = (name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)).lower()
    if host.rstrip(".") not in guard.hosts:
        guard.refuse(f"{host} is not a host of this service.")


def _judge_connection(guard: Guard, arguments: tuple[Any, ...]) -> None:
    address = arguments[1]
    if not isinstance(address, tuple) or len(address) < 2:
        guard.refuse("A local socket is no host of this service.")
    host, port = str(address[0]), address[1]
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        guard.refuse(f"{host} was not looked up before the connection.")
    if not guard.private_too and not safe_http.is_public(host):
        guard.refuse(f"Its host's name leads to {host}, an address of a private network.")
    if port != guard.port:
        guard.refuse(f"Port {port} is not where this service listens.")


def _refuse_datagram(guard: Guard, arguments: tuple[Any, ...]) -> None:
    if arguments[1] is not None:
        guard.refuse("This service is not reached by datagrams.")


def _refuse_other_look_up(guard: Guard, arguments: tuple[Any, ...]) -> None:
    guard.refuse("Names are looked up in one way only.")


def _refuse_program(guard: Guard, arguments: tuple[Any, ...]) -> None:
    raise NotAllowed("Sending a message starts no other program.")


def _judge_file(guard: Guard, arguments: tuple[Any, ...]) -> None:
    path = arguments[0]
    if isinstance(path, int):  # a file that is open already
        return
    place = os.path.realpath(os.fsdecode(path))
    if not place.startswith(_SOFTWARE):
        raise NotAllowed("Sending a message reads no files of this machine.")


_SOFTWARE = tuple(
    os.path.join(os.path.realpath(sysconfig.get_path(name)), "")
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
"""Where installed modules are, which a library may import later."""
_JUDGES = {
    "socket.getaddrinfo": _judge_name,
    "socket.connect": _judge_connection,
    "socket.sendto": _refuse_datagram,
    "socket.sendmsg": _refuse_datagram,
    "socket.gethostbyname": _refuse_other_look_up,
    "socket.gethostbyaddr": _refuse_other_look_up,
    "open": _judge_file,
    "os.system": _refuse_program,
    "os.posix_spawn": _refuse_program,
    "subprocess.Popen": _refuse_program,
}
"""By the names of Python's audit events (docs.python.org/3/library/audit_events.html)."""
