"""HTTP posts to addresses that users enter, without giving them access to this network.

A name is looked up once, every address it has is judged, and the connection goes to one of those addresses: a name
that answers differently a moment later gains nothing. Redirects are not followed, and the whole exchange has a time
limit. Hosts that the operator named (STARLING_ALERT_HOSTS) are exempt.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

WITHIN_S = 10.0
_NEVER = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments, with the metadata service of one cloud
        "192.88.99.0/24",  # relays of 6to4, which lead into whatever network has one
        "168.63.129.16/32",  # Azure's host, seen from its machines only; public by its number
        "2001::/32",  # Teredo and 6to4: they contain an arbitrary IPv4 address
        "2002::/16",
        "3fff::/20",  # documentation
    )
)
_INTERNET_BY_IPV6 = ipaddress.ip_network("2000::/3")
"""All of IPv6 that the internet uses. Outside it are networks' own addresses, the old site-local ones
(fec0::/10) among them, and IPv4 in disguise: of old (::/96), and for translators (NAT64 by 64:ff9b::/96 and
64:ff9b:1::/48)."""
_ISATAP = 0x00005EFE
"""The bits before the IPv4 address in ISATAP addresses, tunnels inside a site. One more bit means "unique"."""
_ISATAP_MASK = 0xFDFFFFFF


class AddressRefused(Exception):
    """Nothing is sent to this address; the text says why and what to do."""


class HostUnreachable(Exception):
    """The host cannot be reached now; the text says why."""


@dataclass(frozen=True)
class Target:
    """A URL's host, port and path, and the addresses that its name resolved to and that were checked."""

    host: str
    port: int
    path: str
    tls: bool
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class HttpAnswer:
    """`body`: at most as many bytes as the caller wanted; more are not read."""

    status: int
    retry_after_s: float | None
    body: bytes = b""


def is_exempt(host: str, port: int | None = None) -> bool:
    """Whether the operator allows this host, although it may be private."""
    named = settings.STARLING_ALERT_HOSTS
    return host.lower() in named or (port is not None and f"{host.lower()}:{port}" in named)


def target_of(url: str) -> Target:
    """The URL's present target. Raises AddressRefused, or HostUnreachable if its name cannot be resolved."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressRefused("This is no web address. Copy it again.") from None
    if not (parts.path + parts.query).isascii():
        raise AddressRefused("There are letters in it that web addresses do not have. Copy it again.")
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in ("https", "http") or not host:
        raise AddressRefused("This is no web address. It begins with https:// and a host name.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The address holds a user name or password. Leave them out.")
    port = port or (443 if parts.scheme == "https" else 80)
    exempt = is_exempt(host, port)
    if parts.scheme == "http" and not exempt:
        raise AddressRefused("Starling sends by https only: on the way, http can be read and changed.")
    addresses = _resolve(host, port)
    if not exempt and not all(is_public(address) for address in addresses):
        raise AddressRefused(
            f"{host} is an address of a private network. Starling sends to public hosts only, unless this"
            " installation's operator names the host in STARLING_ALERT_HOSTS."
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(host, port, path, parts.scheme == "https", addresses)


def is_public(address: str) -> bool:
    """Whether the address is on the public internet: not private, local, reserved, shared or wrapped."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if ip not in _INTERNET_BY_IPV6 or int(ip) >> 32 & _ISATAP_MASK == _ISATAP:
            return False
    if any(ip in network for network in _NEVER if network.version == ip.version):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    within_s: float = WITHIN_S,
    most_bytes: int = 0,
    method: str = "POST",
) -> HttpAnswer:
    """Post (or PUT) to an address, and return the answer. Raises AddressRefused or HostUnreachable."""
    ends_s = time.monotonic() + within_s
    target = target_of(url)
    failure: Exception | None = None
    for address in target.addresses:
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            break
        try:
            return _exchange(target, address, method, body, headers, left_s, most_bytes)
        except ConnectionRefusedError as error:  # the next address may listen; nothing was sent to this one
            failure = error
        except (OSError, http.client.HTTPException) as error:
            failure = error
            break
    raise HostUnreachable(_why(target, failure, within_s))


class _Pinned(http.client.HTTPConnection):
    """Connects to one address, whatever the name resolves to by now. TLS still requires the name's certificate."""

    def __init__(self, target: Target, address: str, timeout_s: float) -> None:
        super().__init__(target.host, target.port, timeout=timeout_s)
        self.default_port = 443 if target.tls else 80
        self._target, self._address = target, address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self._target.port), self.timeout)
        if self._target.tls:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._target.host)


def _exchange(
    target: Target,
    address: str,
    method: str,
    body: bytes,
    headers: Mapping[str, str],
    within_s: float,
    most_bytes: int,
) -> HttpAnswer:
    connection = _Pinned(target, address, within_s)
    # The socket's timeout is for each read: a host that sends a byte at a time would never time out.
    watchdog = threading.Timer(within_s, _cut, [connection])
    watchdog.daemon = True
    watchdog.start()
    try:
        connection.request(method, target.path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        content = answer.read(most_bytes) if most_bytes else b""
        return HttpAnswer(answer.status, _seconds(answer.getheader("Retry-After")), content)
    finally:
        watchdog.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _resolve(host: str, port: int) -> tuple[str, ...]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise HostUnreachable(f"The name {host} could not be looked up.") from None
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in addresses))


def _seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after and retry_after.isdecimal() and len(retry_after) < 7 else None


def _why(target: Target, failure: Exception | None, within_s: float) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"The certificate of {target.host} is not good: {failure.verify_message}."
    if failure is None or isinstance(failure, TimeoutError):
        return f"{target.host} did not answer within {within_s:g} s."
    if isinstance(failure, ConnectionRefusedError):
        return f"{target.host} takes no connections on port {target.port}."
    return f"The connection to {target.host} broke off."
