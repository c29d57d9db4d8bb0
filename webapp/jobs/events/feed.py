"""One reader for each job and web process: it reads and encodes new events once for all viewers.

Redis notifies it; polling every two seconds makes up for lost notifications. A viewer's queue may have gaps:
each chunk says which events it covers, and a viewer that finds a gap reads the database. The sentences take
several queries, so they are sent at most once a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from django.db import DatabaseError

from webapp.database.readers import Readers, Result
from webapp.doorbell import CHANNEL_PREFIX
from webapp.doorbell_listener import listen_to_doorbells
from webapp.jobs import queries
from webapp.jobs.events.viewers import LiveViewers
from webapp.jobs.models import Job

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
TELL_EVERY_S = 1.0
QUEUE_LENGTH = 200
_SNAPSHOT_AGE_S = 0.5
_WAITING_AGE_S = 2.0


class Chunk(NamedTuple):
    """Events `first` to `last`, encoded. Without events it holds only the header, and `first` is the next event."""

    first: int
    last: int
    text: str


def encode(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


class JobFeed:
    """Follows one job while it has viewers."""

    def __init__(self, job_id: str, readers: Readers) -> None:
        self._job_id = job_id
        self._readers = readers
        self._viewers: set[asyncio.Queue[Chunk | None]] = set()
        self._rung = asyncio.Event()
        self._began = asyncio.Event()
        self._seq: int | None = None
        self._sentences_at = -TELL_EVERY_S
        self._sentences_pending = False
        self._snapshot: tuple[float, int, str] | None = None
        self._snapshot_lock = asyncio.Lock()
        self._waiting: tuple[float, str] | None = None
        self._waiting_lock = asyncio.Lock()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    @property
    def watched(self) -> bool:
        return bool(self._viewers)

    def add_viewer(self) -> asyncio.Queue[Chunk | None]:
        """Return a queue of new chunks. A final None means that the viewer was too slow and was dropped."""
        queue: asyncio.Queue[Chunk | None] = asyncio.Queue(QUEUE_LENGTH + 1)
        self._viewers.add(queue)
        return queue

    def remove_viewer(self, queue: asyncio.Queue[Chunk | None]) -> None:
        self._viewers.discard(queue)

    def ring(self, seq: int) -> None:
        """Look now, unless event `seq` has been seen already."""
        if self._seq is None or seq > self._seq:
            self._rung.set()

    def stop(self) -> None:
        self._task.cancel()

    async def began(self) -> None:
        """Wait until no later event can be missed. Earlier events are in the database."""
        await self._began.wait()

    async def snapshot(self) -> tuple[int, str]:
        """Return the snapshot's last event number and its text; shared among viewers who connect at once."""
        async with self._snapshot_lock:
            if self._snapshot is None or time.monotonic() - self._snapshot[0] > _SNAPSHOT_AGE_S:
                seq, text = await self._readers.read(_encoded_snapshot, self._job_id)
                self._snapshot = (time.monotonic(), seq, text)
            return self._snapshot[1], self._snapshot[2]

    async def why_waiting(self) -> str:
        """Return why the job waits; computed once for all viewers."""
        async with self._waiting_lock:
            if self._waiting is None or time.monotonic() - self._waiting[0] > _WAITING_AGE_S:
                self._waiting = time.monotonic(), await self._readers.read(queries.why_waiting, self._job_id)
            return self._waiting[1]

    async def chunk_after(self, seq: int) -> Chunk | None:
        """Return what the database holds after event `seq`; None if nothing."""
        return await self._readers.read(_encoded_events, self._job_id, seq)

    async def needs_snapshot(self, after: int) -> bool:
        last = await self._readers.read(queries.last_seq, self._job_id)
        return queries.needs_snapshot(after, last)

    async def _follow(self) -> None:
        while True:
            try:
                if self._seq is None:
                    self._seq = await self._readers.read(queries.last_seq, self._job_id)
                    self._began.set()
                else:
                    await self._look(self._seq)
            except Job.DoesNotExist:
                self._began.set()
                return  # the access check closes its viewers
            except DatabaseError as error:
                log.warning("feed of %s: %s", self._job_id, error)
                self._rung.clear()
            wait_s = LOOK_EVERY_S
            if self._sentences_pending:
                wait_s = max(0.0, self._sentences_at + TELL_EVERY_S - time.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._rung.wait()

    async def _look(self, seq: int) -> None:
        """Send new events, and the sentences when they are due."""
        self._rung.clear()
        due = time.monotonic() >= self._sentences_at + TELL_EVERY_S
        while chunk := await self._readers.read(_encoded_events, self._job_id, seq, due):
            self._hand_on(chunk)
            self._seq = seq = chunk.last
            self._sentences_pending = not due
            if due:
                self._sentences_at, due = time.monotonic(), False
        if self._sentences_pending and due:
            text = await self._readers.read(_encoded_header, self._job_id)
            self._sentences_at, self._sentences_pending = time.monotonic(), False
            self._hand_on(Chunk(seq + 1, seq, text))

    def _hand_on(self, chunk: Chunk) -> None:
        for queue in list(self._viewers):
            self._offer(queue, chunk)

    def _offer(self, queue: asyncio.Queue[Chunk | None], chunk: Chunk) -> None:
        if queue.qsize() < QUEUE_LENGTH:
            queue.put_nowait(chunk)
        else:
            self._viewers.discard(queue)
            queue.put_nowait(None)


def _encoded_snapshot(job_id: str) -> tuple[int, str]:
    message = queries.snapshot(job_id)
    return message["seq"], encode(message)


def _encoded_events(job_id: str, seq: int, with_sentences: bool = True) -> Chunk | None:
    message = queries.events_message(job_id, seq, with_sentences=with_sentences)
    return None if message is None else Chunk(message["first"], message["last"], encode(message))


def _encoded_header(job_id: str) -> str:
    return encode(queries.header_message(job_id))


class FeedHub:
    """The feeds of this process by job, with one shared Redis subscription."""

    def __init__(self) -> None:
        self._feeds: dict[str, JobFeed] = {}
        self._readers: Readers | None = None
        self._listener: asyncio.Task[None] | None = None
        self.seats = LiveViewers(self.read)
        self._other_seats: dict[Callable[..., Any], LiveViewers] = {}

    def seats_by(self, check: Callable[..., Any]) -> LiveViewers:
        """Return the seats of viewers whose access this query checks, for those who are no people with a session."""
        return self._other_seats.setdefault(check, LiveViewers(self.read, check))

    def feed(self, job_id: str) -> JobFeed:
        """Return the job's feed, started if necessary. Add a viewer at once, or it may stop again."""
        if self._readers is None:
            self._readers = Readers()
        if self._listener is None:
            self._listener = asyncio.get_running_loop().create_task(
                listen_to_doorbells(CHANNEL_PREFIX, self._heard)
            )
        if job_id not in self._feeds:
            self._feeds[job_id] = JobFeed(job_id, self._readers)
        return self._feeds[job_id]

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run a query on the feeds' own connections."""
        if self._readers is None:
            self._readers = Readers()
        return await self._readers.read(query, *arguments)

    async def leave(self, job_id: str) -> None:
        """Stop the job's feed if it has no viewers; the last feed stops the subscription."""
        feed = self._feeds.get(job_id)
        if feed is not None and not feed.watched:
            feed.stop()
            del self._feeds[job_id]
        if not self._feeds and self._readers is not None:
            readers, self._readers = self._readers, None
            if self._listener is not None:
                self._listener.cancel()
                self._listener = None
            await asyncio.to_thread(readers.close)

    def _heard(self, job_id: str, seq: bytes) -> None:
        """Pass a doorbell on to the job's feed. Without Redis the feeds poll."""
        feed = self._feeds.get(job_id)
        if feed is not None and seq.isdigit():
            feed.ring(int(seq))


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, FeedHub] = WeakKeyDictionary()


def hub() -> FeedHub:
    """Return the hub of the running event loop; a web process has one loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), FeedHub())
