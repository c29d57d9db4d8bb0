"""Pages as the web process serves them: threads that stay, streams of both kinds, and how answers are packed."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from webapp.asgi_handler import THREADS, PageHandler

pytestmark = pytest.mark.asyncio
_seen: dict[str, Any] = {}


def whole(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<p>word</p>" * 100)


def asking(request: HttpRequest) -> HttpResponse:
    connection.ensure_connection()
    _seen.setdefault("connections", set()).add((threading.get_ident(), id(connection.connection)))
    return HttpResponse()


def tagged(request: HttpRequest) -> HttpResponse:
    return HttpResponse("word " * 100, headers={"ETag": '"1"'})


def picture(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"word" * 100, content_type="image/webp")


def pieces(request: HttpRequest) -> StreamingHttpResponse:
    def made() -> Iterator[str]:
        for number in range(3):
            _seen[f"thread {number}"] = threading.current_thread().name
            yield f"{number};"

    return StreamingHttpResponse(made(), content_type="text/csv")


def flow(request: HttpRequest) -> StreamingHttpResponse:
    async def made() -> AsyncIterator[str]:
        for number in range(3):
            yield f"{number};"

    return StreamingHttpResponse(made(), content_type="text/csv")


def rows(request: HttpRequest) -> StreamingHttpResponse:
    def counted() -> int:
        found = get_user_model().objects.count()
        _seen["flowing"] = connection.connection
        return found

    async def made() -> AsyncIterator[str]:
        yield str(await sync_to_async(counted)())

    return StreamingHttpResponse(made(), content_type="text/csv")


def file(request: HttpRequest) -> FileResponse:
    return FileResponse(open(__file__, "rb"))


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("this page is broken")


urlpatterns = [
    path(f"{view.__name__}/", view)
    for view in (whole, asking, tagged, picture, pieces, flow, rows, file, broken)
]


@pytest.fixture
def handler(settings: Any) -> Iterator[PageHandler]:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = ["webapp.http.responses.CompressedPages"]
    _seen.clear()
    handler = PageHandler()
    yield handler
    handler.close()


async def _ask(handler: PageHandler, name: str, accept: str = "gzip") -> tuple[dict[str, str], list[bytes]]:
    """The headers, with the status as `status`, and the parts of the body as they were sent."""
    headers, parts = {}, []
    given = [{"type": "http.request", "body": b""}]

    async def receive() -> dict[str, Any]:
        if not given:
            await asyncio.Event().wait()  # the other side stays
        return given.pop()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers.update({key.decode().lower(): value.decode() for key, value in message["headers"]})
            headers["status"] = str(message["status"])
        else:
            parts.append(message.get("body", b""))

    scope = {"type": "http", "method": "GET", "path": f"/{name}/", "query_string": b"", "http_version": "1.1"}
    scope["headers"] = [(b"host", b"testserver"), (b"accept-encoding", accept.encode())]  # type: ignore[assignment]
    await handler(scope, receive, send)
    return headers, parts


@pytest.mark.django_db(transaction=True)
async def test_threads_and_their_connections_are_kept(handler: PageHandler) -> None:
    for _ in range(5):
        await _ask(handler, "asking")
    await asyncio.gather(*(_ask(handler, "asking") for _ in range(40)))
    threads = {thread for thread, _ in _seen["connections"]}
    assert len(threads) <= THREADS
    assert len(_seen["connections"]) == len(threads), "a thread keeps its connection from request to request"


async def test_words_are_compressed_and_files_are_not(handler: PageHandler) -> None:
    headers, parts = await _ask(handler, "whole")
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(b"".join(parts)) == b"<p>word</p>" * 100
    headers, parts = await _ask(handler, "whole", accept="br")
    assert "content-encoding" not in headers
    assert headers["vary"] == "Accept-Encoding"
    for name in ("tagged", "picture", "pieces", "file"):
        headers, _ = await _ask(handler, name)
        assert "content-encoding" not in headers, name


@pytest.mark.parametrize("name", ["pieces", "flow"])
async def test_a_stream_is_sent_piece_by_piece(handler: PageHandler, name: str) -> None:
    headers, parts = await _ask(handler, name)
    assert headers["content-type"] == "text/csv"
    assert parts == [b"0;", b"1;", b"2;", b""]
    if name == "pieces":
        assert all(_seen[f"thread {number}"].startswith("pages") for number in range(3))


@pytest.mark.django_db(transaction=True)
async def test_a_flow_s_own_connection_ends_with_it(handler: PageHandler) -> None:
    _, parts = await _ask(handler, "rows")
    assert parts[0] == b"0"
    open_now = _seen["flowing"]
    if connection.vendor == "sqlite":
        with pytest.raises(sqlite3.ProgrammingError):
            open_now.execute("SELECT 1")
    else:
        assert open_now.closed


async def test_a_file_comes_whole(handler: PageHandler) -> None:
    headers, parts = await _ask(handler, "file")
    with open(__file__, "rb") as there:
        assert b"".join(parts) == there.read()
    assert int(headers["content-length"]) == sum(map(len, parts))


async def test_a_broken_page_answers_500(handler: PageHandler) -> None:
    headers, _ = await _ask(handler, "broken")
    assert headers["status"] == "500"
