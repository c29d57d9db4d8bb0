"""Who may follow a job live. Access is checked when a socket opens and every second after that.

The repeated check is one batch for all sockets of the process, with the same number of queries for five
hundred as for one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.utils.crypto import constant_time_compare

from webapp.accounts.hashed_sessions import SessionStore, stored_key
from webapp.accounts.models import Membership, Role
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job

log = logging.getLogger(__name__)

SIGNED_OUT = 4401
ROLE_LOWERED = 4403
NOT_THERE = 4404
TRY_AGAIN = 1011
CHECK_EVERY_S = 1.0
_LOOKS_THAT_MAY_FAIL = 10
"""Failed checks in a row after which sockets close: their access is then too long unchecked."""


class Viewer(NamedTuple):
    """A session and the job it follows."""

    session_key: str | None
    job_id: str


Answers = dict[Viewer, Role | int]
"""By viewer, the role, or the code to close the socket with."""


def check_access(viewers: Collection[Viewer]) -> Answers:
    """Return each viewer's access from the database. Sign-out, a new password and a lost membership count at once."""
    people = _people(viewer.session_key for viewer in viewers)
    jobs = Job.objects.filter(pk__in={viewer.job_id for viewer in viewers}, deleted_at=None)
    projects = dict(jobs.values_list("pk", "project_id"))
    members = Membership.objects.filter(
        user_id__in=set(people.values()), project_id__in=set(projects.values())
    )
    roles = {(user, project): role for user, project, role in members.values_list("user", "project", "role")}

    def answer(viewer: Viewer) -> Role | int:
        person = people.get(viewer.session_key or "")
        if person is None:
            return SIGNED_OUT
        role = roles.get((person, projects.get(viewer.job_id, 0)))
        return NOT_THERE if role is None else Role(role)

    return {viewer: answer(viewer) for viewer in viewers}


def _people(session_keys: Iterable[str | None]) -> dict[str, Any]:
    """Return the user of each valid session, as `django.contrib.auth.get_user` finds it, for many sessions at once."""
    store, given = SessionStore(), {stored_key(key): key for key in session_keys if key}
    rows = store.model.objects.filter(session_key__in=given, expire_date__gt=SYSTEM_CLOCK.now())
    claims = {given[row]: store.decode(data) for row, data in rows.values_list("session_key", "session_data")}
    model = get_user_model()
    people: dict[str, Any] = {
        str(user.pk): user
        for user in model.objects.filter(
            pk__in={claim[SESSION_KEY] for claim in claims.values() if SESSION_KEY in claim}, is_active=True
        )
    }
    return {
        key: people[claim[SESSION_KEY]].pk
        for key, claim in claims.items()
        if claim.get(SESSION_KEY) in people and _holds(claim, people[claim[SESSION_KEY]])
    }


def _holds(claim: dict[str, Any], person: AbstractBaseUser) -> bool:
    """Return whether the session was opened with the user's present password, by a backend that is still enabled."""
    if claim.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return False
    return constant_time_compare(claim.get(HASH_SESSION_KEY, ""), person.get_session_auth_hash())


@dataclass(eq=False)
class LiveViewer:
    """A viewer with access. `lost` resolves to the close code when access is lost."""

    viewer: Hashable
    role: Role
    lost: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def close(self, code: int) -> None:
        if not self.lost.done():
            self.lost.set_result(code)

    def update(self, answer: Role | int) -> None:
        if isinstance(answer, int):
            self.close(answer)
        elif not answer.allows(self.role):
            self.close(ROLE_LOWERED)
        else:
            self.role = answer


class LiveViewers:
    """All open sockets of an event loop. `read` runs a query without blocking the loop, `check` is such a query that
    says who of many viewers has access; without it they are people with a session."""

    def __init__(
        self,
        read: Callable[..., Awaitable[Any]],
        check: Callable[..., Mapping[Any, Role | int]] | None = None,
    ) -> None:
        self._read = read
        self._given_check = check
        self._taken: set[LiveViewer] = set()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def seat(self, viewer: Hashable) -> AsyncIterator[LiveViewer | int]:
        """Yield a seat while the block runs, or the code to refuse with."""
        answer = (await self._read(self._check, [viewer]))[viewer]
        if isinstance(answer, int):
            yield answer
            return
        seat = LiveViewer(viewer, answer)
        self._taken.add(seat)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield seat
        finally:
            self._taken.discard(seat)
            if not self._taken and self._task is not None:
                self._task.cancel()
                self._task = None

    @property
    def _check(self) -> Callable[..., Mapping[Any, Role | int]]:
        return self._given_check or check_access

    async def _watch(self) -> None:
        failed = 0
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            try:
                answers = await self._read(self._check, {connection.viewer for connection in self._taken})
                failed = 0
            except (
                Exception
            ) as error:  # whatever it is: a viewer who cannot be checked must not stay connected
                log.warning("viewers could not be checked: %s", error)
                answers, failed = {}, failed + 1
            for seat in list(self._taken):
                if seat.viewer in answers:  # new viewers were checked when they connected
                    seat.update(answers[seat.viewer])
                elif failed >= _LOOKS_THAT_MAY_FAIL:
                    seat.close(TRY_AGAIN)
