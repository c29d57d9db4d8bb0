"""The socket of a job page: snapshot, then every event once and in order, for those who may see it."""

import asyncio
import gc
import json
import statistics
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
import redis.asyncio
from asgiref.sync import sync_to_async
from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import checkpoint_saved, evaluated, make_running_job, make_user, round_finished
from tests.members import add_member
from tests.webapp.socket_client import SocketClient
from webapp import doorbell
from webapp.accounts.models import Role, User
from webapp.jobs.events import consumers, viewers
from webapp.jobs.events import feed as feeds
from webapp.jobs.events.consumers import websocket_urlpatterns
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

_application = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))


class Seen:
    """A running job and who may see it."""

    def __init__(self) -> None:
        self.job, epoch = make_running_job()
        self.user = self.job.created_by
        self.recorder = Recorder(self.job.pk, epoch, keep_checkpoints=3)

    def rounds(self, *numbers: int) -> None:
        for number in numbers:
            self.recorder.record(round_finished(number))

    def last_seq(self) -> int:
        return Job.objects.values_list("last_seq", flat=True).get(pk=self.job.pk)


def _cookie(user: Any) -> str:
    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


@asynccontextmanager
async def _viewer(seen: Seen, user: Any = None, after: int | None = None) -> AsyncIterator[SocketClient]:
    cookie = f"sessionid={await sync_to_async(_cookie)(user)}" if user is not None else ""
    query = "" if after is None else f"after={after}"
    viewer = SocketClient(_application, f"/ws/v1/jobs/{seen.job.pk}/", query=query, cookie=cookie)
    await viewer.open()
    try:
        yield viewer
    finally:
        await viewer.close()


async def _message(viewer: SocketClient, kind: str = "events") -> dict[str, Any]:
    """The next message of this kind; signs of life are passed over, and what is only said of the job."""
    while True:
        message = json.loads(await viewer.text())
        if message["t"] not in ("hb", "told") or kind == message["t"]:
            assert message["t"] == kind
            return message


async def _events(viewer: SocketClient, until: int) -> list[int]:
    numbers: list[int] = []
    while not numbers or numbers[-1] < until:
        message = await _message(viewer)
        assert [message["first"], message["last"]] == [
            message["events"][0]["seq"],
            message["events"][-1]["seq"],
        ]
        numbers += [event["seq"] for event in message["events"]]
    return numbers


@pytest_asyncio.fixture
async def seen(transactional_db: None) -> Seen:
    return await sync_to_async(Seen)()


async def test_a_snapshot_then_what_happens(seen: Seen) -> None:
    await sync_to_async(seen.rounds)(1, 2)
    await sync_to_async(seen.recorder.record)(evaluated(2, 50.0))
    async with _viewer(seen, seen.user) as viewer:
        snapshot = await _message(viewer, "snapshot")
        assert snapshot["seq"] == await sync_to_async(seen.last_seq)()
        assert snapshot["job"]["observed"] == "running"
        assert snapshot["series"]["columns"]["steps"] == [256, 512]
        assert snapshot["series"]["evaluations"] == {"round": [2], "steps": [512], "mean": [50.0]}
        assert [event["seq"] for event in snapshot["events"]] == list(range(1, snapshot["seq"] + 1))
        await sync_to_async(seen.rounds)(3, 4, 5)
        assert await _events(viewer, snapshot["seq"] + 3) == [snapshot["seq"] + n for n in (1, 2, 3)]


async def test_of_a_quick_job_sentences_come_once_a_second(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(feeds, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(feeds, "time", SimpleNamespace(monotonic=lambda: now_s))
    async with _viewer(seen, seen.user) as viewer:
        await _message(viewer, "snapshot")
        await _message(viewer, "hb")  # it has caught up: what comes now comes from the shared reader
        await sync_to_async(seen.rounds)(1)
        assert "progress" in (await _message(viewer))["job"]
        await sync_to_async(seen.rounds)(2)
        quick = await _message(viewer)
        assert quick["job"]["round_no"] == 2
        assert "progress" not in quick["job"]
        now_s += feeds.TELL_EVERY_S
        told = await _message(viewer, "told")
        assert told["job"]["round_no"] == 2
        assert {"progress", "burn"} <= set(told["job"])
        await sync_to_async(seen.recorder.record)(checkpoint_saved(2))
        await sync_to_async(seen.recorder.flush)()
        assert "progress" in (await _message(viewer))["job"], "what is no round is told at once"


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
    async with _viewer(seen, seen.user) as viewer:
        await asyncio.to_thread(reading.wait, 60.0)
        await asyncio.sleep(0.3)  # time for a viewer who waits for nobody to look for itself
        await sync_to_async(seen.rounds)(1)
        last = await sync_to_async(seen.last_seq)()
        may_go_on.set()
        snapshot = await _message(viewer, "snapshot")
        assert snapshot["seq"] == last or await _events(viewer, last) == [last]


async def test_going_on_after_a_number(seen: Seen) -> None:
    await sync_to_async(seen.rounds)(1, 2, 3)
    last = await sync_to_async(seen.last_seq)()
    async with _viewer(seen, seen.user, after=last - 2) as viewer:
        assert await _events(viewer, last) == [last - 1, last]


async def test_a_number_that_never_was_gets_a_snapshot(seen: Seen) -> None:
    async with _viewer(seen, seen.user, after=1000) as viewer:
        await _message(viewer, "snapshot")


async def test_strangers_see_nothing(seen: Seen) -> None:
    stranger = await sync_to_async(make_user)()
    async with _viewer(seen, stranger) as viewer:
        assert await viewer.closed() == 4404
    async with _viewer(seen) as viewer:
        assert await viewer.closed() == 4401


def _signs_out(seen: Seen) -> None:
    Session.objects.all().delete()


def _has_a_new_password(seen: Seen) -> None:
    seen.user.set_password("another long password")
    seen.user.save()


def _is_locked_out(seen: Seen) -> None:
    User.objects.filter(pk=seen.user.pk).update(is_active=False)


def _is_removed(seen: Seen) -> None:
    seen.user.memberships.all().delete()


def _is_lowered(seen: Seen) -> None:
    seen.user.memberships.update(role="viewer")


def _loses_the_job(seen: Seen) -> None:
    now = datetime.now(UTC)
    Job.objects.filter(pk=seen.job.pk).update(deleted_at=now, archived_at=now)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (_signs_out, 4401),
        (_has_a_new_password, 4401),
        (_is_locked_out, 4401),
        (_is_removed, 4404),
        (_is_lowered, 4403),
        (_loses_the_job, 4404),
    ],
)
async def test_the_view_of_somebody_ends_who(
    what: Callable[[Seen], None], code: int, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a look of the database that comes every second, whatever else is or is not sent."""
    monkeypatch.setattr(consumers, "HEARTBEAT_S", 3600.0)
    async with _viewer(seen, seen.user) as viewer:
        await _message(viewer, "snapshot")
        await _message(viewer, "hb")
        await sync_to_async(what)(seen)
        assert await viewer.closed() == code


async def test_a_viewer_who_reads_nothing_is_shown_out_as_well(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.05)
    monkeypatch.setattr(consumers, "SEND_WITHIN_S", 3600.0)
    send, stuck = consumers.JobConsumer.send, asyncio.Event()

    async def held_up(self: Any, text_data: str | None = None, **more: Any) -> None:
        if text_data is not None and '"t":"events"' in text_data:
            stuck.set()
            await asyncio.sleep(3600)
        await send(self, text_data=text_data, **more)

    monkeypatch.setattr(consumers.JobConsumer, "send", held_up)
    async with _viewer(seen, seen.user) as viewer:
        await _message(viewer, "snapshot")
        await sync_to_async(seen.rounds)(1)
        await stuck.wait()
        await sync_to_async(_signs_out)(seen)
        assert await viewer.closed() == 4401


async def test_a_higher_role_ends_nothing(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.01)
    looks = _that_found(monkeypatch, "check_access", viewers)
    await sync_to_async(seen.user.memberships.update)(role="editor")
    async with _viewer(seen, seen.user) as viewer:
        await _message(viewer, "snapshot")
        await sync_to_async(seen.user.memberships.update)(role="owner")
        enough = len(looks) + 3
        while len(looks) < enough:
            await asyncio.sleep(0.01)
        await sync_to_async(seen.rounds)(1)
        await _message(viewer)
        await sync_to_async(seen.user.memberships.update)(role="editor")
        assert await viewer.closed() == 4403


async def test_who_cannot_be_checked_does_not_look_on_for_ever(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _viewer(seen, seen.user) as viewer:
        await _message(viewer, "snapshot")
        monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.01)

        def away(asked: Any) -> Any:
            raise OperationalError("the database is away")

        monkeypatch.setattr(viewers, "check_access", away)
        assert await viewer.closed() == 1011


async def test_many_viewers_are_checked_in_as_many_queries_as_one(seen: Seen) -> None:
    def counted(number: int) -> int:
        keys = []
        for _ in range(number):
            person = make_user()
            add_member(seen.job.project, person.email, "viewer")
            keys.append(_cookie(person))
        with CaptureQueriesContext(connection) as queries:
            answers = viewers.check_access([viewers.Viewer(key, seen.job.pk) for key in keys])
        assert set(answers.values()) == {Role.VIEWER}
        return len(queries)

    assert await sync_to_async(counted)(1) == await sync_to_async(counted)(20) == 4


async def test_nothing_is_begun_for_a_job_before_it_is_known_who_asks(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    class Noted(feeds.JobFeed):
        def __init__(self, job_id: str, readers: feeds.Readers) -> None:
            begun.append(job_id)
            super().__init__(job_id, readers)

    monkeypatch.setattr(feeds, "JobFeed", Noted)
    stranger = await sync_to_async(make_user)()
    for user, job_id, code in (
        (None, "nowhere", 4401),
        (None, seen.job.pk, 4401),
        (stranger, seen.job.pk, 4404),
        (seen.user, "nowhere", 4404),
    ):
        cookie = f"sessionid={await sync_to_async(_cookie)(user)}" if user else ""
        viewer = SocketClient(_application, f"/ws/v1/jobs/{job_id}/", cookie=cookie)
        await viewer.open()
        assert await viewer.closed() == code
        await viewer.close()
    assert begun == []
    async with _viewer(seen, seen.user) as allowed:
        await _message(allowed, "snapshot")
    assert begun == [seen.job.pk]


async def test_a_feed_of_a_job_that_is_not_there_ends_by_itself(seen: Seen) -> None:
    feed = feeds.hub().feed("nowhere")
    queue = feed.add_viewer()
    await asyncio.wait([feed._task])
    assert feed._task.exception() is None
    feed.remove_viewer(queue)
    await feeds.hub().leave("nowhere")


@pytest.mark.parametrize("gone", [Job, User])
async def test_a_row_that_goes_away_under_its_viewer_is_no_fault(
    gone: Any, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(consumers, "HEARTBEAT_S", 0.05)
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    other = await sync_to_async(make_user)()
    await sync_to_async(lambda: add_member(seen.job.project, other.email, "viewer"))()
    row = seen.job if gone is Job else other
    async with _viewer(seen, other) as viewer:
        await _message(viewer, "snapshot")
        await sync_to_async(lambda: gone.objects.filter(pk=row.pk).delete())()
        assert await viewer.closed() == (4404 if gone is Job else 4401)
    gc.collect()
    assert faults == []


async def test_one_person_holds_so_many_sockets_and_no_more(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "SOCKETS_A_PERSON", 2)
    other = await sync_to_async(make_user)()
    await sync_to_async(lambda: add_member(seen.job.project, other.email, "viewer"))()
    async with _viewer(seen, seen.user) as first, _viewer(seen, seen.user) as second:
        for viewer in (first, second):
            await _message(viewer, "snapshot")
        async with _viewer(seen, seen.user) as third:
            assert await third.closed() == 4429
        async with _viewer(seen, other) as not_counted:
            await _message(not_counted, "snapshot")
    async with _viewer(seen, seen.user) as again:  # places are given back
        await _message(again, "snapshot")


async def test_signs_of_life(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "HEARTBEAT_S", 0.1)
    async with _viewer(seen, seen.user) as viewer:
        snapshot = await _message(viewer, "snapshot")
        assert (await _message(viewer, "hb"))["seq"] == snapshot["seq"]


async def test_who_speaks_is_shown_out(seen: Seen) -> None:
    async with _viewer(seen, seen.user) as viewer:
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
    async with _viewer(seen, seen.user) as viewer:
        await _message(viewer, "snapshot")
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


async def test_doorbells_make_it_quick(seen: Seen, valkey: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_EVERY_S", 60.0)
    monkeypatch.setattr(doorbell, "bell", doorbell.Bell())  # other tests' went quiet, without Redis
    async with _viewer(seen, seen.user) as viewer:
        snapshot = await _message(viewer, "snapshot")
        await _until_it_listens(valkey)
        delays, writes = [], []
        for number in range(1, 21):
            began_s = time.perf_counter()
            await sync_to_async(seen.rounds)(number)
            committed_s = time.perf_counter()
            assert (await _message(viewer))["last"] == snapshot["seq"] + number
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


async def test_many_viewers_share_one_reader(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _that_found(monkeypatch, "_encoded_events")
    async with _viewer(seen, seen.user) as one, _viewer(seen, seen.user) as other:
        for viewer in (one, other):
            await _message(viewer, "snapshot")
            await _message(viewer, "hb")  # it has caught up: what comes now comes from the shared reader
        await sync_to_async(seen.rounds)(1)
        for viewer in (one, other):
            await _message(viewer)
        assert len(reads) == 1
    assert not feeds.hub()._feeds


def _that_found(monkeypatch: pytest.MonkeyPatch, name: str, where: Any = feeds) -> list[Any]:
    """What was read from now on where there was something; the look that is due anyway may find nothing."""
    found: list[Any] = []
    real: Callable[..., Any] = getattr(where, name)

    def noted(*arguments: Any) -> Any:
        if (one := real(*arguments)) is not None:
            found.append(one)
        return one

    monkeypatch.setattr(where, name, noted)
    return found
