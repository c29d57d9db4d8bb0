"""The WebSocket of a shared page: of a job the messages of its live page, reduced to what the link shows; of a
comparison or a report, that it has changed.

No one signs in: the secret is in the address. Whether the link works is checked every second, as the access of people
is; a socket whose link was revoked or expired closes with 4404, and its page is loaded again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection, Hashable
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import NamedTuple

from channels.db import database_sync_to_async
from django.db import DatabaseError
from django.urls import path

from webapp.accounts.models import Role
from webapp.jobs.events.consumers import TOO_MANY, JobConsumer
from webapp.jobs.events.feed import LOOK_EVERY_S, FeedHub, encode
from webapp.jobs.events.viewers import NOT_THERE, TRY_AGAIN, LiveViewer
from webapp.sharing.access import allowed, missed
from webapp.sharing.allowlist import job_message
from webapp.sharing.models import SharedLink
from webapp.sharing.pages import version_of
from webapp.sharing.services import find_link, working_among

_HEARTBEAT_LOOKS = 2


class SharedViewer(NamedTuple):
    """A person with the link."""

    link_id: int


def check_links(viewers: Collection[SharedViewer]) -> dict[SharedViewer, Role | int]:
    """Return each viewer's access from the database, in one query: to view, or the code to close with."""
    working = working_among({viewer.link_id for viewer in viewers})
    return {viewer: Role.VIEWER if viewer.link_id in working else NOT_THERE for viewer in viewers}


class SharedConsumer(JobConsumer):
    """One viewer of one link."""

    async def connect(self) -> None:
        self._link: SharedLink | None = None
        self._secret: str = self.scope["url_route"]["kwargs"]["secret"]
        self._job_id = ""
        self._task: asyncio.Task[None] | None = None
        await self.accept()
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def _person(self) -> Hashable | None:
        return None if self._link is None else SharedViewer(self._link.pk)

    def _seat(self, feeds: FeedHub) -> AbstractAsyncContextManager[LiveViewer | int]:
        assert self._link is not None  # found before a seat is taken
        return feeds.seats_by(check_links).seat(SharedViewer(self._link.pk))

    async def _serve(self) -> None:
        address = (self.scope.get("client") or ("",))[0]
        try:
            if not await database_sync_to_async(allowed)(address):
                await self.close(TOO_MANY)
                return
            self._link = await database_sync_to_async(find_link)(self._secret)
            if self._link is None:
                await self.close(TOO_MANY if await database_sync_to_async(missed)(address) else NOT_THERE)
                return
        except DatabaseError:
            await self.close(TRY_AGAIN)
            return
        self._job_id = self._link.job_id or ""
        await super()._serve()

    async def _tell_in(self, seat: LiveViewer, feeds: FeedHub) -> int:
        if self._job_id:
            return await super()._tell_in(seat, feeds)
        telling = asyncio.ensure_future(self._tell_versions(feeds))
        try:
            await asyncio.wait({telling, seat.lost}, return_when=asyncio.FIRST_COMPLETED)
            return seat.lost.result() if seat.lost.done() else telling.result()
        finally:
            telling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(telling, return_exceptions=True)

    async def _tell_versions(self, feeds: FeedHub) -> int:
        """Send the version of what is shown when it changes, and now and then as a sign of life."""
        sent, looks = "", 0
        while True:
            version = await feeds.read(version_of, self._link)
            if version != sent or looks % _HEARTBEAT_LOOKS == 0:
                await self._send(encode({"t": "version", "version": version}))
            sent, looks = version, looks + 1
            await asyncio.sleep(LOOK_EVERY_S)

    async def _send(self, text: str) -> None:
        assert self._link is not None
        await super()._send(_shared_text(text, self._link.with_money) if self._job_id else text)


@lru_cache(32)
def _shared_text(text: str, money: bool) -> str:
    """A message for members as viewers of a link get it; worked out once for all of them."""
    return encode(job_message(json.loads(text), money=money))


websocket_urlpatterns = [path("ws/v1/shared/<str:secret>/", SharedConsumer.as_asgi())]
