"""The socket of a job page has limits: sockets a person, slow readers, full queues, one reader for all viewers."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.factories import make_user
from tests.members import add_member
from tests.webapp.jobs.events.live_viewer import Seen, next_message, record_found, viewer_of
from webapp.jobs.events import consumers
from webapp.jobs.events import feed as feeds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_a_feed_of_a_job_that_is_not_there_ends_by_itself(seen: Seen) -> None:
    feed = feeds.hub().feed("nowhere")
    queue = feed.add_viewer()
    await asyncio.wait([feed._task])
    assert feed._task.exception() is None
    feed.remove_viewer(queue)
    await feeds.hub().leave("nowhere")


async def test_one_person_holds_so_many_sockets_and_no_more(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "SOCKETS_A_PERSON", 2)
    other = await sync_to_async(make_user)()
    await sync_to_async(lambda: add_member(seen.job.project, other.email, "viewer"))()
    async with viewer_of(seen, seen.user) as first, viewer_of(seen, seen.user) as second:
        for viewer in (first, second):
            await next_message(viewer, "snapshot")
        async with viewer_of(seen, seen.user) as third:
            assert await third.closed() == 4429
        async with viewer_of(seen, other) as not_counted:
            await next_message(not_counted, "snapshot")
    async with viewer_of(seen, seen.user) as again:  # places are given back
        await next_message(again, "snapshot")


async def test_who_speaks_is_shown_out(seen: Seen) -> None:
    async with viewer_of(seen, seen.user) as viewer:
        await viewer.say("hello")
        assert await viewer.closed() == 4400


async def test_who_reads_too_slowly_is_shown_out(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "SEND_WITHIN_S", 0.1)
    send = consumers.JobConsumer.send

    async def stuck(self: Any, text_data: str | None = None, **more: Any) -> None:
        if text_data is not None and '"t":"events"' in text_data:
            await asyncio.sleep(60)
        await send(self, text_data=text_data, **more)

    monkeypatch.setattr(consumers.JobConsumer, "send", stuck)
    async with viewer_of(seen, seen.user) as viewer:
        await next_message(viewer, "snapshot")
        await sync_to_async(seen.rounds)(1)
        assert await viewer.closed() == 4008


async def test_a_full_queue_drops_its_viewer(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "QUEUE_LENGTH", 2)
    hub = feeds.hub()
    feed = hub.feed(seen.job.pk)
    queue = feed.add_viewer()
    for number in range(3):
        feed._offer(queue, feeds.Chunk(number, number, ""))
    assert [await queue.get() for _ in range(2)] == [(0, 0, ""), (1, 1, "")]
    assert await queue.get() is None
    assert not feed.watched
    await hub.leave(seen.job.pk)


async def test_many_viewers_share_one_reader(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = record_found(monkeypatch, "_encoded_events")
    async with viewer_of(seen, seen.user) as one, viewer_of(seen, seen.user) as other:
        for viewer in (one, other):
            await next_message(viewer, "snapshot")
            await next_message(viewer, "hb")  # it has caught up: what comes now comes from the shared reader
        await sync_to_async(seen.rounds)(1)
        for viewer in (one, other):
            await next_message(viewer)
        assert len(reads) == 1
    assert not feeds.hub()._feeds
