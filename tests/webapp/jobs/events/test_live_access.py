"""Who may open the socket of a job page, and what ends the view of those who may no more."""

import asyncio
import gc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.test.utils import CaptureQueriesContext

from tests.factories import make_user
from tests.members import add_member
from tests.webapp.jobs.events.live_viewer import (
    APPLICATION,
    Seen,
    cookie_of,
    next_message,
    record_found,
    viewer_of,
)
from tests.webapp.socket_client import SocketClient
from webapp.accounts.models import Role, User
from webapp.jobs.events import consumers, viewers
from webapp.jobs.events import feed as feeds
from webapp.jobs.models import Job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_strangers_see_nothing(seen: Seen) -> None:
    stranger = await sync_to_async(make_user)()
    async with viewer_of(seen, stranger) as viewer:
        assert await viewer.closed() == 4404
    async with viewer_of(seen) as viewer:
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
    assert viewers.CHECK_EVERY_S <= 1.0
    monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.05)
    monkeypatch.setattr(consumers, "HEARTBEAT_S", 3600.0)
    async with viewer_of(seen, seen.user) as viewer:
        await next_message(viewer, "snapshot")
        await next_message(viewer, "hb")
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
    async with viewer_of(seen, seen.user) as viewer:
        await next_message(viewer, "snapshot")
        await sync_to_async(seen.rounds)(1)
        await stuck.wait()
        await sync_to_async(_signs_out)(seen)
        assert await viewer.closed() == 4401


async def test_a_higher_role_ends_nothing(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.01)
    looks = record_found(monkeypatch, "check_access", viewers)
    await sync_to_async(seen.user.memberships.update)(role="editor")
    async with viewer_of(seen, seen.user) as viewer:
        await next_message(viewer, "snapshot")
        await sync_to_async(seen.user.memberships.update)(role="owner")
        enough = len(looks) + 3
        while len(looks) < enough:
            await asyncio.sleep(0.01)
        await sync_to_async(seen.rounds)(1)
        await next_message(viewer)
        await sync_to_async(seen.user.memberships.update)(role="editor")
        assert await viewer.closed() == 4403


async def test_who_cannot_be_checked_does_not_look_on_for_ever(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewer_of(seen, seen.user) as viewer:
        await next_message(viewer, "snapshot")
        monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.01)

        def away(*_: Any) -> Any:
            raise OperationalError("the database is away")

        monkeypatch.setattr(CursorWrapper, "execute", away)
        assert await viewer.closed() == 1011


async def test_many_viewers_are_checked_in_as_many_queries_as_one(seen: Seen) -> None:
    def counted(number: int) -> int:
        keys = []
        for _ in range(number):
            person = make_user()
            add_member(seen.job.project, person.email, "viewer")
            keys.append(cookie_of(person))
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
        cookie = f"sessionid={await sync_to_async(cookie_of)(user)}" if user else ""
        viewer = SocketClient(APPLICATION, f"/ws/v1/jobs/{job_id}/", cookie=cookie)
        await viewer.open()
        assert await viewer.closed() == code
        await viewer.close()
    assert begun == []
    async with viewer_of(seen, seen.user) as allowed:
        await next_message(allowed, "snapshot")
    assert begun == [seen.job.pk]


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
    async with viewer_of(seen, other) as viewer:
        await next_message(viewer, "snapshot")
        await sync_to_async(lambda: gone.objects.filter(pk=row.pk).delete())()
        assert await viewer.closed() == (4404 if gone is Job else 4401)
    gc.collect()
    assert faults == []
