"""Which pages may open sockets, and which client is at the other end.

Only this site's own pages may open sockets: browsers send cookies from any page, but name its origin. Forms have
Django's token for that; a socket has nothing but its Origin.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int | None]
"""Scheme, host and port."""


def own_pages_only(application: Any) -> Any:
    """Wrap the application, so that sockets of other sites' pages are refused with 403."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        answering = application if opened_by_own_page(scope) else WebsocketDenier()
        await answering(scope, receive, send)

    return checked


def opened_by_own_page(scope: Any) -> bool:
    """Whether the Origin is the address of this request, or one that the operator gave the site."""
    headers = dict(scope["headers"])
    origin = _origin(headers.get(b"origin", b"").decode("latin-1"))
    if origin is None:
        return False
    host = headers.get(b"host", b"").decode("latin-1").lower()
    scheme = (
        "https" if settings.STARLING_BASE_URL.startswith("https:") or scope["scheme"] == "wss" else "http"
    )
    here = _origin(f"{scheme}://{host}")
    if origin == here and validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return True
    return any(_fits(origin, own) for own in (settings.STARLING_BASE_URL, *settings.CSRF_TRUSTED_ORIGINS))


def _fits(origin: Origin, address: str) -> bool:
    own = _origin(address.replace("://*.", "://."))
    return own is not None and origin[::2] == own[::2] and is_same_domain(origin[1], own[1])


def _origin(address: str) -> Origin | None:
    """Scheme, host and port of an origin; None for invalid ones, such as the `null` of a page without an origin."""
    try:
        parts = urlsplit(address.lower())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port


def behind_proxies(application: Any) -> Any:
    """Wrap the application, so that it is called with the scheme and address of the client behind the proxies.

    They come from headers of proxies that the operator named; from anyone else these headers say nothing. Whether
    cookies are secure, HSTS is sent and whose attempts are counted all follow from them.
    """
    return ProxyHeadersMiddleware(application, settings.STARLING_TRUSTED_PROXIES)
