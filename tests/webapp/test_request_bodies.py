"""Bodies of requests: little is taken from anyone, much only from who may send it, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import path

from webapp.asgi_handler import PageHandler
from webapp.http import request_bodies

pytestmark = pytest.mark.asyncio
MEGABYTE = b"x" * 2**20


def count(request: HttpRequest) -> HttpResponse:
    return HttpResponse(sum(len(piece) for piece in iter(lambda: request.read(2**16), b"")))


may_answer = threading.Event()


def wait(request: HttpRequest) -> HttpResponse:
    may_answer.wait(60.0)
    return HttpResponse(len(request.body))


urlpatterns = [path("count/", count), path("api/v1/count/", count), path("wait/", wait)]


@pytest.fixture
def made(settings: Any) -> Iterator[Callable[..., PageHandler]]:
    """Makes handlers; with a limit, of those where every sender may upload so many bytes."""
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, []
    handlers: list[PageHandler] = []

    def make(upload_limit: int = 0) -> PageHandler:
        handlers.append(PageHandler(lambda scope: upload_limit) if upload_limit else PageHandler())
        return handlers[-1]

    yield make
    for one in handlers:
        one.close()


@pytest.fixture
def handler(made: Callable[..., PageHandler]) -> PageHandler:
    return made()


class Sender:
    """Someone who sends a body, and what became of it."""

    def __init__(self, handler: PageHandler, address: str = "192.0.2.1") -> None:
        self._handler, self._address = handler, address
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.answer = b""
        self.taken_before_the_answer = 0
        self.most_on_disk = 0
        self.read = asyncio.Event()
        """Set once a first piece was asked for."""

    async def post(
        self,
        pieces: Iterable[bytes] | AsyncIterator[bytes],
        *,
        size: int | None = None,
        to: str = "/count/",
    ) -> int:
        """The status. Without `size` the body comes in chunks and says of itself when it ends."""
        size_header = (
            (b"transfer-encoding", b"chunked") if size is None else (b"content-length", str(size).encode())
        )
        scope = {
            "type": "http",
            "method": "POST",
            "path": to,
            "query_string": b"",
            "http_version": "1.1",
            "client": (self._address, 1),
            "headers": [
                (b"host", b"testserver"),
                (b"content-type", b"application/octet-stream"),
                size_header,
            ],
        }
        body = aiter(pieces) if hasattr(pieces, "__aiter__") else _given(pieces)

        async def receive() -> dict[str, Any]:
            self.read.set()
            piece = await anext(body, None)
            if piece is None or len(piece) >= 2**16:
                self.most_on_disk = max(self.most_on_disk, _bytes_in_unnamed_files())
            if not self.status:
                self.taken_before_the_answer += len(piece or b"")
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        async def send(message: dict[str, Any]) -> None:
            self.status = message.get("status", self.status)
            self.headers |= dict(message.get("headers", ()))
            self.answer += message.get("body", b"")

        await self._handler(scope, receive, send)
        return self.status


async def _given(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _unfinished(*pieces: bytes) -> AsyncIterator[bytes]:
    """A body of which nothing comes after these pieces."""
    for piece in pieces:
        yield piece
    await asyncio.Event().wait()


def _bytes_in_unnamed_files() -> int:
    """What this process holds on disk under no name, as temporary files do; but for small ones, which are pytest's."""
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        place = f"/proc/self/fd/{descriptor}"
        try:
            if os.readlink(place).endswith("(deleted)"):
                size = os.stat(place).st_size
                found += size if size >= 2**16 else 0
        except OSError:
            continue
    return found


@pytest.mark.parametrize("address", ["/count/", "/api/v1/count/", "/nowhere/"])
async def test_of_a_body_that_says_it_is_too_large_nothing_is_taken(
    handler: PageHandler, address: str
) -> None:
    sender = Sender(handler)
    assert await sender.post([MEGABYTE] * 300, size=300 * 2**20, to=address) == 413
    assert sender.taken_before_the_answer == 0
    assert sender.most_on_disk == 0
    assert sender.headers[b"Connection"] == b"close"


@pytest.mark.parametrize("address", ["/count/", "/api/v1/count/", "/nowhere/"])
async def test_of_a_body_without_a_size_a_megabyte_is_held_and_nothing_on_disk(
    handler: PageHandler, address: str
) -> None:
    await Sender(handler).post([b"what is loaded first is not counted"], to=address)
    sender = Sender(handler)
    tracemalloc.start()
    try:
        assert await sender.post((b"x" * 2**16 for _ in range(2**10)), to=address) == 413
        _, most_held = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sender.taken_before_the_answer <= request_bodies.BODY_LIMIT_BYTES + 2**16
    assert sender.most_on_disk == 0
    assert most_held <= 2 * request_bodies.BODY_LIMIT_BYTES + 2**20


async def test_a_body_in_tiny_pieces_takes_no_more_memory_than_one_in_large(handler: PageHandler) -> None:
    await Sender(handler).post([b"what is loaded first is not counted"])
    sender = Sender(handler)
    tracemalloc.start()
    try:
        assert await sender.post(b"x" for _ in range(20_000)) == 200
        _, most_held = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sender.answer == b"20000"
    assert most_held < 10 * 20_000


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**20])
async def test_a_body_within_the_limit_comes_whole(handler: PageHandler, size: int) -> None:
    for size_header in (size, None):
        sender = Sender(handler)
        assert await sender.post([MEGABYTE[:size]], size=size_header) == 200
        assert int(sender.answer) == size
        assert sender.most_on_disk == 0


async def test_a_body_of_which_nothing_comes_is_not_waited_for(
    handler: PageHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_bodies, "PROGRESS_WITHIN_S", 0.05)
    assert await Sender(handler).post(_unfinished(), size=100) == 408
    assert await Sender(handler).post(_unfinished(b"x" * 50), size=100) == 408


async def test_a_byte_now_and_then_is_no_progress(
    handler: PageHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_bodies, "PROGRESS_WITHIN_S", 0.05)

    async def dripping() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.001)
            yield b"x"

    sender = Sender(handler)
    assert await sender.post(dripping(), size=2**20) == 408
    assert sender.taken_before_the_answer < request_bodies.PROGRESS_BYTES


async def test_so_many_bodies_at_once_from_one_address_and_from_all(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_bodies, "BODIES_AN_ADDRESS", 2)
    monkeypatch.setattr(request_bodies, "BODIES_AT_ONCE", 3)
    monkeypatch.setattr(request_bodies, "PLACE_WITHIN_S", 0.05)
    handler = made()
    slow = [Sender(handler, address) for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2")]
    sending = [asyncio.ensure_future(one.post(_unfinished(b"x"), size=10)) for one in slow]
    for one in slow:
        await one.read.wait()

    third = Sender(handler, "192.0.2.1")
    assert await third.post([b"x"], size=1) == 503
    assert third.headers[b"Retry-After"] == b"10"
    assert third.taken_before_the_answer == 0
    assert await Sender(handler, "192.0.2.3").post([b"x"], size=1) == 503

    # Those who send nothing need no place.
    assert await Sender(handler, "192.0.2.1").post([], size=0) == 200
    sending[0].cancel()
    await asyncio.wait(sending[:1])
    assert await Sender(handler, "192.0.2.1").post([b"x"], size=1) == 200
    for one in sending:
        one.cancel()
    await asyncio.wait(sending)


async def test_a_body_whose_page_is_at_work_has_its_place_still(
    handler: PageHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or as many whole bodies would be held as come while pages are slow."""
    monkeypatch.setattr(request_bodies, "PLACE_WITHIN_S", 60.0)
    may_answer.clear()
    first = request_bodies.BODIES_AN_ADDRESS
    senders = [Sender(handler) for _ in range(2 * first)]
    posts = [asyncio.create_task(one.post([b"x" * 1000], to="/wait/")) for one in senders]
    try:
        async with asyncio.timeout(60.0):
            while sum(one.read.is_set() for one in senders) < first:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert sum(one.read.is_set() for one in senders) == first
    finally:
        may_answer.set()
    assert await asyncio.gather(*posts) == [200] * len(senders)


async def test_who_hangs_up_while_sending_is_let_go(handler: PageHandler) -> None:
    answers: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": "/count/", "query_string": b"", "http_version": "1.1"}
    await handler({**scope, "client": None, "headers": [(b"content-length", b"5")]}, receive, send)
    assert answers == []


async def test_a_refusal_says_what_and_why_and_what_to_do(handler: PageHandler) -> None:
    page, program = Sender(handler), Sender(handler)
    await page.post([], size=2**30)
    assert page.headers[b"Content-Type"].startswith(b"text/html")
    assert b"at most 1 MB" in page.answer
    await program.post([], size=2**30, to="/api/v1/count/")
    problem = json.loads(program.answer)
    assert program.headers[b"Content-Type"] == b"application/problem+json"
    assert problem["status"] == 413
    assert "at most 1 MB" in problem["why"]
    assert problem["fix"]


async def test_who_may_send_a_large_file_has_it_taken_on_disk_up_to_its_limit(made: Any) -> None:
    handler = made(5 * 2**20)
    for size_header in (4 * 2**20, None):
        sender = Sender(handler)
        assert await sender.post([MEGABYTE] * 4, size=size_header) == 200
        assert int(sender.answer) == 4 * 2**20
        assert 2**20 < sender.most_on_disk <= 4 * 2**20
    assert await Sender(handler).post([MEGABYTE] * 6, size=6 * 2**20) == 413
    sender = Sender(handler)
    assert await sender.post([MEGABYTE] * 60) == 413
    assert sender.most_on_disk <= 5 * 2**20
    assert _bytes_in_unnamed_files() == 0, "nothing of it stays"


async def test_few_large_files_are_taken_at_once(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "UPLOADS_AT_ONCE", 1)
    monkeypatch.setattr(request_bodies, "PLACE_WITHIN_S", 0.05)
    handler = made(5 * 2**20)
    first = Sender(handler)
    sending = asyncio.ensure_future(first.post(_unfinished(MEGABYTE), size=3 * 2**20))
    await first.read.wait()
    assert await Sender(handler, "192.0.2.9").post([MEGABYTE] * 3, size=3 * 2**20) == 503
    assert await Sender(handler).post([MEGABYTE], size=2**20) == 200
    sending.cancel()
    await asyncio.wait([sending])
