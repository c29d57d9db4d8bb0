"""A job's events as server-sent events, for programs that would otherwise ask again and again.

A stream runs in the web process's event loop and shares the feed of live pages: it holds no thread and no connection
to the database. Each event has its number as `id`, its kind as `event`, and in `data` what the list of events has. The
stream ends once the job is over and all is sent, or within a second of its token, role or job being gone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

from django.http import StreamingHttpResponse

from webapp.accounts.models import Membership, Role
from webapp.api.models import ApiToken
from webapp.api.problems import ApiRefused
from webapp.api.schemas import Shape, StoredReport
from webapp.api.tokens import valid_among
from webapp.job_states import TERMINAL
from webapp.jobs.events.consumers import HEARTBEAT_S
from webapp.jobs.events.feed import FeedHub, JobFeed, hub
from webapp.jobs.events.viewers import CHECK_EVERY_S, NOT_THERE, SIGNED_OUT
from webapp.jobs.models import Event, Job

STREAMS_A_PERSON = 20
"""In one web process. Further ones are refused, and events are read page by page."""
_EVENTS_AT_ONCE = 200


class EventShape(Shape):
    seq: int
    at: datetime
    kind: str
    payload: StoredReport


class TokenViewer(NamedTuple):
    """A token and the job that it follows."""

    token_id: str
    job_id: str


def check_tokens(viewers: Collection[TokenViewer]) -> dict[TokenViewer, Role | int]:
    """Return each viewer's access from the database, in three queries: the role, or the code to end with."""
    tokens: dict[str, ApiToken] = {one.pk: one for one in valid_among({one.token_id for one in viewers})}
    jobs = Job.objects.filter(pk__in={viewer.job_id for viewer in viewers}, deleted_at=None)
    projects = dict(jobs.values_list("pk", "project_id"))
    people = {token.user_id for token in tokens.values()}
    members = Membership.objects.filter(user_id__in=people, project_id__in=set(projects.values()))
    roles = {(user, project): role for user, project, role in members.values_list("user", "project", "role")}

    def answer(viewer: TokenViewer) -> Role | int:
        token, project = tokens.get(viewer.token_id), projects.get(viewer.job_id)
        if token is None:
            return SIGNED_OUT
        role = roles.get((token.user_id, project)) if project is not None else None
        return NOT_THERE if role is None or token.project_id not in (None, project) else Role(role)

    return {viewer: answer(viewer) for viewer in viewers}


_open: Counter[int] = Counter()
_counting = Lock()


class EventStream(StreamingHttpResponse):
    """The stream of one viewer. It has one of its person's places until it is closed."""

    def __init__(self, token: ApiToken, job_id: str, after: int) -> None:
        self._person: int | None = token.user_id
        with _counting:
            if _open[token.user_id] >= STREAMS_A_PERSON:
                raise ApiRefused(
                    429,
                    "streams",
                    "No stream was opened.",
                    f"{STREAMS_A_PERSON} streams of yours are open already.",
                    "Close one, or ask for the events page by page.",
                )
            _open[token.user_id] += 1
        super().__init__(_messages(TokenViewer(token.pk, job_id), after), content_type="text/event-stream")
        self["X-Accel-Buffering"] = "no"  # proxies would hold events back

    def close(self) -> None:
        super().close()
        with _counting:
            if self._person is not None:
                _open[self._person] -= 1
                self._person = None


async def _messages(viewer: TokenViewer, after: int) -> AsyncIterator[str]:
    feeds = hub()
    try:
        async with feeds.seats_by(check_tokens).seat(viewer) as seat:
            if isinstance(seat, int):
                return
            feed = feeds.feed(viewer.job_id)
            queue = feed.add_viewer()
            try:
                async for message in _until_over(feeds, feed, queue, viewer.job_id, after):
                    if seat.lost.done():
                        return
                    yield message
            finally:
                feed.remove_viewer(queue)
    except Job.DoesNotExist:
        return
    finally:
        await feeds.leave(viewer.job_id)


async def _until_over(
    feeds: FeedHub, feed: JobFeed, queue: asyncio.Queue[Any], job_id: str, after: int
) -> AsyncIterator[str]:
    """Yield events, and comments as heartbeats. Each is yielded within a second or so, so that access is checked."""
    await feed.began()
    loop = asyncio.get_running_loop()
    yield ": the events of this job\n\n"
    heartbeat_at = loop.time() + HEARTBEAT_S
    while True:
        rows, over = await feeds.read(_events_after, job_id, after)
        for seq, text in rows:
            yield text
            after = seq
        if rows:
            heartbeat_at = loop.time() + HEARTBEAT_S
            continue
        if over:
            yield "event: end\ndata: {}\n\n"
            return
        while (chunk := await _newest(queue)) is _NOTHING:
            beats = loop.time() >= heartbeat_at
            yield ": still here\n\n" if beats else ""
            heartbeat_at = loop.time() + HEARTBEAT_S if beats else heartbeat_at
        if chunk is None:  # the reader was too slow; it can go on after its last event
            return


_NOTHING = object()


async def _newest(queue: asyncio.Queue[Any]) -> Any:
    """The last that is queued, once there is anything; _NOTHING after a second."""
    try:
        async with asyncio.timeout(CHECK_EVERY_S):
            newest = await queue.get()
    except TimeoutError:
        return _NOTHING
    while not queue.empty():
        newest = queue.get_nowait()
    return newest


def _events_after(job_id: str, after: int) -> tuple[list[tuple[int, str]], bool]:
    """The next events as messages, and whether the job was over before they were read."""
    over = Job.objects.values_list("observed", flat=True).get(pk=job_id) in TERMINAL
    rows = Event.objects.filter(job_id=job_id, seq__gt=after).order_by("seq")[:_EVENTS_AT_ONCE]
    return [(row.seq, _message(row)) for row in rows], over


def _message(row: Event) -> str:
    return f"id: {row.seq}\nevent: {row.kind}\ndata: {EventShape.of(row).model_dump_json()}\n\n"
