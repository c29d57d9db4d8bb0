"""The socket of a shared page: live as the page inside, reduced to what the link shows, closed once it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from django.utils import timezone

from tests.webapp.sharing.shares import make_secret_job, record, secrets_in, share
from tests.webapp.sharing.test_allowlist import money_in
from tests.webapp.socket_client import SocketClient
from webapp.accounts.models import User
from webapp.jobs.events import consumers as inside
from webapp.jobs.events import viewers
from webapp.jobs.models import Job
from webapp.sharing import access, pages
from webapp.sharing.consumers import websocket_urlpatterns
from webapp.sharing.models import SharedLink
from webapp.sharing.services import revoke_link

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

_application = URLRouter(websocket_urlpatterns)  # as it is mounted: without sessions


class Shared:
    """A running job that is shared without money, with money, and in a comparison."""

    def __init__(self) -> None:
        self.job, self.recorder = make_secret_job()
        self.link, self.path = share(self.job)
        self.paid, self.paid_path = share(self.job, money=True)
        other, _ = make_secret_job(project=self.job.project, user=self.job.created_by, name="Runner")
        self.compared, self.compared_path = share(self.job, of=[self.job.pk, other.pk])

    def rounds(self, first: int) -> None:
        record(self.recorder, first=first)


@pytest_asyncio.fixture
async def shared(transactional_db: None) -> Shared:
    return await sync_to_async(Shared)()


@asynccontextmanager
async def _viewer(path: str, query: str = "") -> AsyncIterator[SocketClient]:
    viewer = SocketClient(_application, f"/ws/v1/shared/{path.split('/')[2]}/", query=query)
    await viewer.open()
    try:
        yield viewer
    finally:
        await viewer.close()


async def _message(viewer: SocketClient, kind: str) -> dict[str, Any]:
    while True:
        text = await viewer.text()
        assert secrets_in(text) == []
        message: dict[str, Any] = json.loads(text)
        if message["t"] == kind:
            return message


async def _until(viewer: SocketClient, round_no: int) -> list[str]:
    """The messages up to the one that tells of this round."""
    texts: list[str] = []
    while True:
        texts.append(await viewer.text())
        points = [event.get("point", {}) for event in json.loads(texts[-1]).get("events", ())]
        if any(point.get("round") == round_no for point in points):
            return texts


async def test_what_happens_arrives_without_money_and_names(shared: Shared) -> None:
    async with _viewer(shared.path) as viewer:
        snapshot = await viewer.text()
        assert json.loads(snapshot)["series"]["columns"]["steps"] == [256, 512, 768]
        await sync_to_async(shared.rounds)(4)
        texts = [snapshot, *await _until(viewer, 6)]
    assert [money_in(text) for text in texts] == [[]] * len(texts)
    assert [secrets_in(text) for text in texts] == [[]] * len(texts)


async def test_with_money_it_arrives_too_and_still_no_names(shared: Shared) -> None:
    async with _viewer(shared.paid_path) as viewer:
        snapshot = await viewer.text()
        assert json.loads(snapshot)["job"]["spent_usd"] == "0.3"
        await sync_to_async(shared.rounds)(4)
        texts = [snapshot, *await _until(viewer, 6)]
    last = [event["point"] for event in json.loads(texts[-1])["events"] if "point" in event][-1]
    assert last["spent_usd"] == 0.6
    assert [secrets_in(text) for text in texts] == [[]] * len(texts)


async def test_a_viewer_who_missed_something_gets_what_came_since(shared: Shared) -> None:
    async with _viewer(shared.path) as viewer:
        seq = json.loads(await viewer.text())["seq"]
    await sync_to_async(shared.rounds)(4)
    async with _viewer(shared.path, f"after={seq}") as viewer:
        assert (await _message(viewer, "events"))["first"] == seq + 1


def _revoked(shared: Shared, link: SharedLink) -> None:
    revoke_link(link)


def _expired(shared: Shared, link: SharedLink) -> None:
    SharedLink.objects.filter(pk=link.pk).update(expires_at=timezone.now())


def _maker_removed(shared: Shared, link: SharedLink) -> None:
    shared.job.created_by.memberships.all().delete()


def _maker_switched_off(shared: Shared, link: SharedLink) -> None:
    User.objects.filter(pk=shared.job.created_by_id).update(is_active=False)


def _job_deleted(shared: Shared, link: SharedLink) -> None:
    now = timezone.now()
    Job.objects.filter(pk=shared.job.pk).update(deleted_at=now, archived_at=now)


@pytest.mark.parametrize("what", [_revoked, _expired, _maker_removed, _maker_switched_off, _job_deleted])
async def test_what_ends_a_link_closes_its_socket(
    what: Callable[[Shared, SharedLink], None], shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a look of the database, which comes every second, whatever else is or is not sent."""
    assert viewers.CHECK_EVERY_S <= 1.0
    monkeypatch.setattr(viewers, "CHECK_EVERY_S", 0.05)
    monkeypatch.setattr(inside, "HEARTBEAT_S", 3600.0)
    async with _viewer(shared.path) as viewer:
        await _message(viewer, "snapshot")
        await sync_to_async(what)(shared, shared.link)
        assert await viewer.closed() == 4404


async def test_a_comparison_says_that_it_has_changed_and_closes_when_revoked(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "VERSION_AGE_S", 0.01)
    monkeypatch.setattr("webapp.sharing.consumers.LOOK_EVERY_S", 0.05)
    async with _viewer(shared.compared_path) as viewer:
        before = await _message(viewer, "version")
        assert set(before) == {"t", "version"}
        await sync_to_async(shared.rounds)(4)
        while (await _message(viewer, "version")) == before:
            pass
        await sync_to_async(revoke_link)(shared.compared)
        assert await viewer.closed() == 4404


async def test_guesses_open_no_socket(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "pace", type(access.pace)())
    monkeypatch.setattr(access, "MISSES_A_MINUTE", 2)
    codes = []
    for guess in ("nonsense", shared.path.split("/")[2][:-1] + "!", "x" * 43):
        async with _viewer(f"/s/{guess}/") as viewer:
            codes.append(await viewer.closed())
    assert codes == [4404, 4404, 4429]


async def test_a_viewer_who_speaks_is_closed(shared: Shared) -> None:
    async with _viewer(shared.path) as viewer:
        await _message(viewer, "snapshot")
        await viewer.say("hello")
        assert await viewer.closed() == 4400


async def test_a_link_has_only_so_many_sockets(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "SOCKETS_A_PERSON", 1)
    async with _viewer(shared.path) as first:
        await _message(first, "snapshot")
        async with _viewer(shared.path) as second:
            assert await second.closed() == 4429
