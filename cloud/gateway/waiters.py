"""Where pullers wait. However many they are, a mailbox is looked into once a second and when a bell rings.

One desk for each event loop. The store's work is done wherever `run` takes it, so that the loop never waits.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cloud.actor.protocol import Ask, Lease
from cloud.gateway.store import Caller, HandOut, Store

log = logging.getLogger(__name__)
Result = TypeVar("Result")

LOOK_EVERY_S = 1.0
_GATHER_S = 0.005
_ADMITTED_FOR_S = 5.0
_UNKNOWN_A_SECOND = 10.0
_TOKENS_KEPT = 4096


class Run(Protocol):
    """Calls a function of the store without holding up the loop."""

    def __call__(self, work: Callable[..., Result], /, *arguments: object) -> Awaitable[Result]: ...


class TooManyUnknown(Exception):
    """So many tokens nobody knows were shown lately that another one is not even looked up."""


@dataclass
class _Waiter:
    caller: Caller
    until_s: float
    answer: asyncio.Future[Lease]


class _Counter:
    """The pullers that wait for one mailbox, and the task that looks into it while there are any."""

    def __init__(self, look: Callable[[list[Caller]], Awaitable[HandOut]]) -> None:
        self._look = look
        self._waiting: dict[str, _Waiter] = {}
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def lease(self, ask: Ask, token: str) -> Lease:
        answer: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(Caller(ask.puller, ask.unit, token), time.monotonic() + ask.wait_s, answer)
        # A puller asks once at a time: an older question of its own was lost on the way.
        self._waiting[ask.puller] = waiter
        self.ring()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._serve())
        try:
            return await answer
        finally:
            if self._waiting.get(ask.puller) is waiter:
                del self._waiting[ask.puller]

    def ring(self) -> None:
        self._rung.set()

    async def _serve(self) -> None:
        while self._waiting:
            # Those who come at the same moment are one look.
            await asyncio.sleep(_GATHER_S)
            self._rung.clear()
            asked = list(self._waiting.values())
            try:
                found = await self._look([one.caller for one in asked])
            except Exception as error:
                log.warning("the mailbox could not be looked into: %s", error)
                self._fail(asked, error)
                continue
            for waiter in asked:
                self._tell(waiter, found)
            nearest_s = min((one.until_s for one in self._waiting.values()), default=0.0) - time.monotonic()
            try:
                await asyncio.wait_for(self._rung.wait(), max(0.0, min(LOOK_EVERY_S, nearest_s)))
            except TimeoutError:
                pass

    def _tell(self, waiter: _Waiter, found: HandOut) -> None:
        given = found.work.get(waiter.caller.name)
        leaves = not found.open or waiter.caller.name in found.leave
        live_s = max(0.0, found.stay_until_unix_s - found.now_unix_s)
        if given is None and not leaves and live_s and time.monotonic() < waiter.until_s:
            return
        self._forget(waiter)
        if waiter.answer.done():
            return
        lease = Lease(word="wait" if not leaves else "leave", live_s=live_s, now_unix_s=found.now_unix_s)
        if given is not None:
            lease = Lease(word="work", live_s=live_s, now_unix_s=found.now_unix_s, **vars(given))
        waiter.answer.set_result(lease)

    def _fail(self, waiters: list[_Waiter], error: Exception) -> None:
        for waiter in waiters:
            self._forget(waiter)
            if not waiter.answer.done():
                waiter.answer.set_exception(error)

    def _forget(self, waiter: _Waiter) -> None:
        if self._waiting.get(waiter.caller.name) is waiter:
            del self._waiting[waiter.caller.name]


class Desk:
    """All counters of a loop, and who may come to which."""

    def __init__(self, store: Store, run: Run) -> None:
        self.store = store
        self.run = run
        self._counters: dict[str, _Counter] = {}
        self._known: dict[bytes, tuple[str, float]] = {}
        self._asked: dict[bytes, asyncio.Future[str | None]] = {}
        self._unknown = _UNKNOWN_A_SECOND
        self._counted_s = time.monotonic()

    async def admitted(self, token: str) -> str | None:
        """The box that the token opens; what was known a moment ago is not asked again.

        TooManyUnknown when others have been guessing: those who are known are served even so.
        """
        key = hashlib.sha256(token.encode()).digest()
        now_s = time.monotonic()
        box, until_s = self._known.get(key, ("", 0.0))
        if until_s > now_s:
            return box
        self._unknown = min(_UNKNOWN_A_SECOND, self._unknown + (now_s - self._counted_s) * _UNKNOWN_A_SECOND)
        self._counted_s = now_s
        # One that was good before is worth a question in any case.
        if not box and self._unknown < 1.0:
            raise TooManyUnknown
        # Those who show the same token at the same moment are one question.
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(self.run(self.store.admitted, token))
        try:
            found = await asyncio.shield(self._asked[key])
        finally:
            self._asked.pop(key, None)
        if found is None:
            self._known.pop(key, None)
            self._unknown -= 1.0
            return None
        while len(self._known) >= _TOKENS_KEPT:
            del self._known[next(iter(self._known))]
        self._known[key] = (found, now_s + _ADMITTED_FOR_S)
        return found

    async def lease(self, box: str, ask: Ask, token: str = "") -> Lease:
        """What the puller gets. `token`: a digest of the one it showed."""
        counter = self._counters.get(box)
        if counter is None:
            counter = self._counters[box] = _Counter(
                lambda callers: self.run(self.store.hand_out, box, callers)
            )
        return await counter.lease(ask, token)

    def ring(self, box: str) -> None:
        """There may be work in this box."""
        if counter := self._counters.get(box):
            counter.ring()
