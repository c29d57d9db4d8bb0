"""Runs Django's pages on a few permanent threads, each with its own database connection.

Every page of ours is a plain function. Django's own ASGI handler would send such a page through some twenty changes of
thread (each middleware has two), on a new thread with a new connection each time, which takes longer than most pages.
Here a request changes thread once, and the answer once more. Its body is taken in before, within limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections, connections
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import set_script_prefix

from cloud.platforms.gateway.asgi import discard_body
from webapp.api import problems
from webapp.http.request_bodies import Bodies, BodyRefused

THREADS = 16
"""The most requests that one web process handles at once; further ones wait."""


class PageHandler(ASGIHandler):
    """An ASGI application for HTTP. Streams may be of either kind: asynchronous ones run in the event loop.

    `upload_limit` says of a request's scope how many bytes its sender may send, where that is more than anyone may; it
    is called on one of the threads.
    """

    def __init__(self, upload_limit: Callable[[Any], int] = lambda scope: 0) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._threads = ThreadPoolExecutor(THREADS, "pages")

        def limit(scope: Any) -> int:
            close_old_connections()  # as at the start of every request: a broken connection is replaced
            return upload_limit(scope)

        self._bodies = Bodies(lambda scope: self._on_thread(limit, scope))

    def close(self) -> None:
        """End the threads once their present work is done."""
        self._threads.shutdown()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            async with self._bodies.taken(scope, receive) as body:
                answer = await self._on_thread(self._answer, scope, body)
        except RequestAborted:
            return
        except BodyRefused as refusal:
            await self._refuse(scope, refusal, receive, send)
            return
        with closing(body):
            if not answer.streaming:
                await self.send_response(answer, send)
            elif answer.is_async:
                await self._send_flow(answer, receive, send)
            else:
                await self._send_pieces(answer, send)

    async def _refuse(self, scope: Any, refusal: BodyRefused, receive: Any, send: Any) -> None:
        """Send the refusal and close the connection; the rest of the body is not read."""
        answer = await self._on_thread(_refusal_page, scope["path"], refusal)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.items()]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": answer.content, "more_body": True})
        await discard_body(receive)
        await send({"type": "http.response.body", "body": b""})

    async def _on_thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _answer(self, scope: Any, body: Any) -> HttpResponseBase:
        """Handle a request and return its response, which is closed unless it is a stream."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        answer = self.get_response(request) if request is not None else refusal
        assert answer is not None  # a scope without a request has a refusal
        answer._handler_class = self.__class__  # type: ignore[attr-defined]
        if isinstance(answer, FileResponse):
            answer.block_size = self.chunk_size
        if not answer.streaming:
            answer.close()
        return answer

    async def _send_flow(self, answer: StreamingHttpResponse, receive: Any, send: Any) -> None:
        """Send a stream that runs in the event loop, until its end or until its reader leaves. Its queries use one
        thread and connection until then."""
        async with ThreadSensitiveContext():
            sending = asyncio.ensure_future(self.send_response(answer, send))
            leaving = asyncio.ensure_future(_left(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
            finally:
                for task in (sending, leaving):
                    task.cancel()
                await asyncio.gather(sending, leaving, return_exceptions=True)
                await sync_to_async(answer.close)()
                await sync_to_async(connections.close_all)()

    async def _send_pieces(self, answer: StreamingHttpResponse, send: Any) -> None:
        """Send a stream that blocks: each piece is built on a thread, and sent before the next one is built."""
        pieces = iter(answer)

        async def fetched() -> AsyncGenerator[bytes, None]:
            while (piece := await self._on_thread(next, pieces, None)) is not None:
                yield piece

        try:
            async with aclosing(fetched()) as stream:
                sent = StreamingHttpResponse(stream, status=answer.status_code, headers=answer.headers)
                sent.cookies = answer.cookies
                await self.send_response(sent, send)
        finally:
            await self._on_thread(answer.close)


async def _left(receive: Any) -> None:
    """Return once the other side has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _refusal_page(path: str, refusal: BodyRefused) -> HttpResponse:
    """The response to a refused body: a problem document for programs, a page for people."""
    if path.startswith("/api/"):
        request = HttpRequest()
        request.path = path
        refused = problems.ApiRefused(
            refusal.status, "body", "The request was not taken.", refusal.why, refusal.fix
        )
        answer = problems.answer(request, refused)
    else:
        answer = HttpResponse(render_to_string("body_refused.html", {"refusal": refusal}))
        answer.status_code = refusal.status
    answer["Content-Length"] = str(len(answer.content))
    answer["Connection"] = "close"
    if refusal.status == 503:
        answer["Retry-After"] = "10"
    return answer
