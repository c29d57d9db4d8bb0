"""A running job, and a viewer at the socket of its page."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.test import Client

from tests.factories import make_running_job, round_finished
from tests.webapp.socket_client import SocketClient
from webapp.jobs.events import feed as feeds
from webapp.jobs.events.consumers import websocket_urlpatterns
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder

APPLICATION = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))


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


def cookie_of(user: Any) -> str:
    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


@asynccontextmanager
async def viewer_of(seen: Seen, user: Any = None, after: int | None = None) -> AsyncIterator[SocketClient]:
    cookie = f"sessionid={await sync_to_async(cookie_of)(user)}" if user is not None else ""
    query = "" if after is None else f"after={after}"
    viewer = SocketClient(APPLICATION, f"/ws/v1/jobs/{seen.job.pk}/", query=query, cookie=cookie)
    await viewer.open()
    try:
        yield viewer
    finally:
        await viewer.close()


async def next_message(viewer: SocketClient, kind: str = "events") -> dict[str, Any]:
    """The next message of this kind; signs of life are passed over, and what is only said of the job."""
    while True:
        message = json.loads(await viewer.text())
        if message["t"] not in ("hb", "header") or kind == message["t"]:
            assert message["t"] == kind
            return message


async def event_numbers(viewer: SocketClient, until: int) -> list[int]:
    numbers: list[int] = []
    while not numbers or numbers[-1] < until:
        message = await next_message(viewer)
        assert [message["first"], message["last"]] == [
            message["events"][0]["seq"],
            message["events"][-1]["seq"],
        ]
        numbers += [event["seq"] for event in message["events"]]
    return numbers


def record_found(monkeypatch: pytest.MonkeyPatch, name: str, where: Any = feeds) -> list[Any]:
    """What was read from now on where there was something; the look that is due anyway may find nothing."""
    found: list[Any] = []
    real: Callable[..., Any] = getattr(where, name)

    def noted(*arguments: Any) -> Any:
        if (one := real(*arguments)) is not None:
            found.append(one)
        return one

    monkeypatch.setattr(where, name, noted)
    return found
