"""Which pages may open a socket: those of the site itself, however it is reached, and no other page of this machine."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.http.origins import opened_by_own_page


def _opened(origin: str | None, host: str, scheme: str = "ws") -> bool:
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return opened_by_own_page({"type": "websocket", "scheme": scheme, "headers": headers})


@pytest.fixture
def public(settings: Any) -> None:
    settings.STARLING_BASE_URL = "https://starling.example.org"
    settings.ALLOWED_HOSTS = ["starling.example.org", "localhost", "127.0.0.1", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://starling.example.org", "https://*.lab.example.org"]


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "http://localhost",
        "http://127.0.0.1:8000",
        "https://127.0.0.1",
        "http://[::1]:8888",
        "http://starling.example.org:9000",
        "http://starling.example.org",
        "https://starling.example.org.evil.example",
        "https://evil.example",
        "https://evil.example/starling.example.org",
        "https://starling.example.org@evil.example",
        "http://other.lab.example.org",
        "file://",
        "null",
        "",
        "https://[",
        "https://starling.example.org:x",
        None,
    ],
)
def test_no_other_page_opens_a_socket_of_a_public_site(origin: str | None, public: None) -> None:
    for host in ("starling.example.org", "127.0.0.1:8001"):
        for scheme in ("ws", "wss"):
            assert not _opened(origin, host, scheme)


@pytest.mark.parametrize("origin", ["https://starling.example.org", "https://STARLING.example.org:443"])
def test_the_pages_of_a_public_site_do(origin: str, public: None) -> None:
    for host in ("starling.example.org", "127.0.0.1:8000"):  # a proxy may send its own name for ours
        for scheme in ("ws", "wss"):
            assert _opened(origin, host, scheme)
    assert _opened("https://other.lab.example.org", "starling.example.org")


def test_a_site_of_this_machine_is_reached_by_its_names_at_its_own_port(settings: Any) -> None:
    settings.STARLING_BASE_URL = "http://127.0.0.1:8000"
    settings.ALLOWED_HOSTS, settings.CSRF_TRUSTED_ORIGINS = ["127.0.0.1", "localhost", "[::1]"], []
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "localhost:8003"):
        assert _opened(f"http://{host}", host)
        assert not _opened("http://localhost:3000", host)
    assert not _opened("http://evil.example:8000", "evil.example:8000"), (
        "a name that leads here from elsewhere"
    )


def test_the_site_asks_it_of_every_socket() -> None:
    from webapp import asgi

    application = asgi.application.app.application_mapping["websocket"]
    assert "own_pages_only" in application.__qualname__
