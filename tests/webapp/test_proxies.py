"""The scheme and the address of a request: a proxy's word counts if the operator named it, no one else's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, JsonResponse
from django.urls import path

from webapp.asgi_handler import PageHandler
from webapp.http.origins import behind_proxies

pytestmark = pytest.mark.asyncio


def seen(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"address": request.META["REMOTE_ADDR"], "scheme": request.scheme})


urlpatterns = [path("seen/", seen)]


@pytest.fixture
def handler(settings: Any) -> Iterator[PageHandler]:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = ["django.middleware.security.SecurityMiddleware"]
    settings.SECURE_HSTS_SECONDS = 3600
    handler = PageHandler()
    yield handler
    handler.close()


async def _seen_by(handler: PageHandler, client: str, **forwarded: str) -> tuple[bytes, bool]:
    """What the page saw, and whether HSTS was sent."""
    names = {"proto": b"x-forwarded-proto", "by": b"x-forwarded-for"}
    headers = [(names[name], value.encode()) for name, value in forwarded.items()]
    scope = {"type": "http", "method": "GET", "path": "/seen/", "query_string": b"", "http_version": "1.1"}
    scope |= {"scheme": "http", "client": (client, 1), "headers": [(b"host", b"testserver"), *headers]}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await behind_proxies(handler)(scope, receive, send)
    hsts = any(name.lower() == b"strict-transport-security" for name, _ in sent[0]["headers"])
    return sent[1]["body"], hsts


@pytest.mark.parametrize("client", ["127.0.0.1", "::1", "192.0.2.1"])
async def test_without_named_proxies_headers_say_nothing(handler: PageHandler, client: str) -> None:
    address, hsts = await _seen_by(handler, client, proto="https", by="198.51.100.7")
    assert address == b'{"address": "%s", "scheme": "http"}' % client.encode()
    assert not hsts


async def test_a_named_proxy_says_who_is_behind_it(handler: PageHandler, settings: Any) -> None:
    settings.STARLING_TRUSTED_PROXIES = ["10.0.0.0/8", "::1"]
    for proxy in ("10.1.2.3", "::1"):
        address, hsts = await _seen_by(handler, proxy, proto="https", by="198.51.100.7")
        assert address == b'{"address": "198.51.100.7", "scheme": "https"}'
        assert hsts
    address, hsts = await _seen_by(handler, "192.0.2.1", proto="https", by="198.51.100.7")
    assert address == b'{"address": "192.0.2.1", "scheme": "http"}'
    assert not hsts


async def test_what_a_client_claims_before_the_proxy_s_own_word_is_not_believed(
    handler: PageHandler, settings: Any
) -> None:
    settings.STARLING_TRUSTED_PROXIES = ["10.0.0.0/8"]
    address, _ = await _seen_by(handler, "10.0.0.1", proto="https", by="127.0.0.1, 198.51.100.7, 10.0.0.2")
    assert b'"198.51.100.7"' in address
