"""The WebSocket of a live page: a snapshot or the missed events, then every event in order, and a heartbeat.

The client sends nothing. A socket closes with 4401 (signed out), 4403 (role lowered), 4404 (no such job for
this user), 4400 (the client sent a message), 4008 (client too slow) or 4429 (too many sockets). The page then
reconnects after its last event, or falls back to polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from django.urls import path

from webapp.clock import SYSTEM_CLOCK
from webapp.jobs import queries
from webapp.jobs.events.feed import Chunk, FeedHub, JobFeed, encode, hub
from webapp.jobs.events.viewers import NOT_THERE, TRY_AGAIN, LiveViewer, Viewer
from webapp.jobs.models import Job

HEARTBEAT_S = 5.0
SEND_WITHIN_S = 5.0
SOCKETS_A_PERSON = 40
"""In one web process. Further tabs poll."""
SPOKE = 4400
TOO_MANY = 4429
TOO_SLOW = 4008

_open_sockets: Counter[Hashable] = Counter()
"""By user. Anonymous clients are refused anyway."""


class JobConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One viewer of one job."""

    async def connect(self) -> None:
        self._job_id: str = self.scope["url_route"]["kwargs"]["job_id"]
        self._task: asyncio.Task[None] | None = None
        await self.accept()
        self._task = asyncio.get_running_loop().create_task(self._serve())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.close(SPOKE)

    async def disconnect(self, code: int) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _person(self) -> Hashable | None:
        """Return whose sockets are counted together."""
        person: int | None = self.scope["user"].pk
        return person

    def _seat(self, feeds: FeedHub) -> AbstractAsyncContextManager[LiveViewer | int]:
        """Return a seat, with the check of access that goes with it."""
        return feeds.seats.seat(Viewer(self.scope["session"].session_key, self._job_id))

    async def _serve(self) -> None:
        person = self._person()
        if person is not None and _open_sockets[person] >= SOCKETS_A_PERSON:
            await self.close(TOO_MANY)
            return
        _open_sockets[person] += 1
        try:
            await self._follow()
        finally:
            _open_sockets[person] -= 1
            if not _open_sockets[person]:
                del _open_sockets[person]

    async def _follow(self) -> None:
        feeds = hub()
        try:
            async with self._seat(feeds) as seat:
                code = seat if isinstance(seat, int) else await self._tell_in(seat, feeds)
            await self.close(code)
        except TimeoutError:
            await self.close(TOO_SLOW)
        except DatabaseError:
            await self.close(TRY_AGAIN)
        except Job.DoesNotExist:
            await self.close(NOT_THERE)
        finally:
            await feeds.leave(self._job_id)

    async def _tell_in(self, seat: LiveViewer, feeds: FeedHub) -> int:
        """Send until there is a reason to close or the viewer loses access; returns the close code."""
        feed = feeds.feed(self._job_id)
        queue = feed.add_viewer()
        telling = asyncio.ensure_future(self._tell(feed, queue))
        try:
            await asyncio.wait({telling, seat.lost}, return_when=asyncio.FIRST_COMPLETED)
            return seat.lost.result() if seat.lost.done() else telling.result()
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            feed.remove_viewer(queue)

    async def _tell(self, feed: JobFeed, queue: asyncio.Queue[Chunk | None]) -> int:
        """Send until there is a reason to close; returns the close code."""
        seq = await self._catch_up(feed)
        heartbeat_at = time.monotonic()  # a client that missed nothing gets this at once
        while True:
            try:
                async with asyncio.timeout(max(0.0, heartbeat_at - time.monotonic())):
                    chunk = await queue.get()
            except TimeoutError:
                waiting = await feed.why_waiting()
                life = {"t": "hb", "at": SYSTEM_CLOCK.now().isoformat(), "seq": seq, "waiting": waiting}
                await self._send(encode(life))
                heartbeat_at = time.monotonic() + HEARTBEAT_S
            else:
                if chunk is None:
                    return TOO_SLOW
                seq = await self._pass_on(feed, chunk, seq)

    async def _catch_up(self, feed: JobFeed) -> int:
        """Send what the viewer has missed; returns the number of its last event."""
        await feed.began()
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        after = queries.event_number(query.get("after", ["0"])[0])
        if not await feed.needs_snapshot(after):
            return await self._send_after(feed, after)
        seq, text = await feed.snapshot()
        await self._send(text)
        return await self._send_after(feed, seq)

    async def _pass_on(self, feed: JobFeed, chunk: Chunk, seq: int) -> int:
        if chunk.first > chunk.last == seq:  # no event, only sentences
            await self._send(chunk.text)
        if chunk.last <= seq:
            return seq
        if chunk.first != seq + 1:
            return await self._send_after(feed, seq)
        await self._send(chunk.text)
        return chunk.last

    async def _send_after(self, feed: JobFeed, seq: int) -> int:
        while chunk := await feed.chunk_after(seq):
            await self._send(chunk.text)
            seq = chunk.last
        return seq

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(SEND_WITHIN_S):
            await self.send(text_data=text)


websocket_urlpatterns = [path("ws/v1/jobs/<str:job_id>/", JobConsumer.as_asgi())]
