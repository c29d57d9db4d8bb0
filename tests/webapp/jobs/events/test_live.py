"""The socket of a job page: a snapshot, then every event once and in order."""

import asyncio
import statistics
import threading
import time
from types import SimpleNamespace

import pytest
import redis.asyncio
from asgiref.sync import sync_to_async

from tests.factories import checkpoint_saved, evaluated
from tests.webapp.jobs.events.live_viewer import Seen, event_numbers, next_message, viewer_of
from webapp import doorbell
from webapp.jobs.events import consumers
from webapp.jobs.events import feed as feeds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_a_snapshot_then_what_happens(seen: Seen) -> None:
    await sync_to_async(seen.rounds)(1, 2)
    await sync_to_async(seen.recorder.record)(evaluated(2, 50.0))
    async with viewer_of(seen, seen.user) as viewer:
        snapshot = await next_message(viewer, "snapshot")
        assert snapshot["seq"] == await sync_to_async(seen.last_seq)()
        assert snapshot["job"]["observed"] == "running"
        assert snapshot["series"]["columns"]["steps"] == [256, 512]
        assert snapshot["series"]["evaluations"] == {"round": [2], "steps": [512], "mean": [50.0]}
        assert [event["seq"] for event in snapshot["events"]] == list(range(1, snapshot["seq"] + 1))
        await sync_to_async(seen.rounds)(3, 4, 5)
        assert await event_numbers(viewer, snapshot["seq"] + 3) == [snapshot["seq"] + n for n in (1, 2, 3)]


async def test_of_a_quick_job_sentences_come_once_a_second(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(feeds, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(feeds, "time", SimpleNamespace(monotonic=lambda: now_s))
    async with viewer_of(seen, seen.user) as viewer:
        await next_message(viewer, "snapshot")
        await next_message(viewer, "hb")  # it has caught up: what comes now comes from the shared reader
        await sync_to_async(seen.rounds)(1)
        assert "progress" in (await next_message(viewer))["job"]
        await sync_to_async(seen.rounds)(2)
        quick = await next_message(viewer)
        assert quick["job"]["round_no"] == 2
        assert "progress" not in quick["job"]
        now_s += feeds.TELL_EVERY_S
        late = await next_message(viewer, "header")
        assert late["job"]["round_no"] == 2
        assert {"progress", "burn"} <= set(late["job"])
        await sync_to_async(seen.recorder.record)(checkpoint_saved(2))
        await sync_to_async(seen.recorder.flush)()
        assert "progress" in (await next_message(viewer))["job"], "what is no round is told at once"


async def test_an_event_between_a_viewers_look_and_the_readers_first_is_not_missed(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shared reader begins late; what happened by then is no news to it."""
    reading, may_go_on = threading.Event(), threading.Event()
    real = feeds.queries.last_seq

    def late(job_id: str) -> int:
        if not reading.is_set():
            reading.set()
            may_go_on.wait(60.0)
        return real(job_id)

    monkeypatch.setattr(feeds.queries, "last_seq", late)
    async with viewer_of(seen, seen.user) as viewer:
        await asyncio.to_thread(reading.wait, 60.0)
        await asyncio.sleep(0.3)  # time for a viewer who waits for nobody to look for itself
        await sync_to_async(seen.rounds)(1)
        last = await sync_to_async(seen.last_seq)()
        may_go_on.set()
        snapshot = await next_message(viewer, "snapshot")
        assert snapshot["seq"] == last or await event_numbers(viewer, last) == [last]


async def test_going_on_after_a_number(seen: Seen) -> None:
    await sync_to_async(seen.rounds)(1, 2, 3)
    last = await sync_to_async(seen.last_seq)()
    async with viewer_of(seen, seen.user, after=last - 2) as viewer:
        assert await event_numbers(viewer, last) == [last - 1, last]


async def test_a_number_that_never_was_gets_a_snapshot(seen: Seen) -> None:
    async with viewer_of(seen, seen.user, after=1000) as viewer:
        await next_message(viewer, "snapshot")


async def test_signs_of_life(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "HEARTBEAT_S", 0.1)
    async with viewer_of(seen, seen.user) as viewer:
        snapshot = await next_message(viewer, "snapshot")
        assert (await next_message(viewer, "hb"))["seq"] == snapshot["seq"]


async def test_doorbells_make_it_quick(seen: Seen, valkey: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_EVERY_S", 60.0)
    monkeypatch.setattr(doorbell, "bell", doorbell.Bell())  # other tests' went quiet, without Redis
    monkeypatch.setattr(doorbell, "_TIMEOUT_S", 60.0)  # and this one does not, however slow this machine is
    async with viewer_of(seen, seen.user) as viewer:
        snapshot = await next_message(viewer, "snapshot")
        await _until_it_listens(valkey)
        delays, writes = [], []
        for number in range(1, 21):
            began_s = time.perf_counter()
            await sync_to_async(seen.rounds)(number)
            committed_s = time.perf_counter()
            assert (await next_message(viewer))["last"] == snapshot["seq"] + number
            delays.append(time.perf_counter() - committed_s)
            writes.append(committed_s - began_s)
    # Without doorbells each would wait for the next look.
    assert max(delays) < feeds.LOOK_EVERY_S / 10
    # Fifty milliseconds; on a machine that is busy, in proportion to what the writing itself took.
    assert statistics.median(delays) < max(0.05, 3 * statistics.median(writes)), sorted(delays)


async def _until_it_listens(url: str) -> None:
    async with redis.asyncio.Redis.from_url(url) as client, asyncio.timeout(60.0):
        while not await client.pubsub_numpat():
            await asyncio.sleep(0.01)
