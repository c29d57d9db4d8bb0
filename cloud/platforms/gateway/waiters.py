"""Pullers that wait for calls. However many wait, a mailbox is read once a second and when a bell rings.

Each event loop has its own `Waiters`. `run` does the store's work elsewhere, so the loop never blocks.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cloud.actor.protocol import Lease, LeaseRequest
from cloud.platforms.gateway.store import HandOut, Store, WaitingPuller

log = logging.getLogger(__name__)
Result = TypeVar("Result")

READ_EVERY_S = 1.0
_GATHER_S = 0.005
_ADMITTED_FOR_S = 5.0
_UNKNOWN_A_SECOND = 10.0
_TOKENS_KEPT = 4096


class RunInThread(Protocol):
    """Calls a function of the store without blocking the loop."""

    def __call__(self, work: Callable[..., Result], /, *arguments: object) -> Awaitable[Result]: ...


class TooManyUnknown(Exception):
    """So many unknown tokens arrived lately that another one is not even looked up."""


@dataclass
class _Waiter:
    caller: WaitingPuller
    until_s: float
    answer: asyncio.Future[Lease]


class _BoxWaiters:
    """The pullers that wait for one mailbox, and the task that reads it while there are any."""

    def __init__(self, hand_out: Callable[[list[WaitingPuller]], Awaitable[HandOut]]) -> None:
        self._hand_out = hand_out
        self._waiting: dict[str, _Waiter] = {}
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def lease(self, request: LeaseRequest, token: str) -> Lease:
        answer: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        caller = WaitingPuller(request.puller, request.unit, token)
        waiter = _Waiter(caller, time.monotonic() + request.wait_s, answer)
        # A puller sends one request at a time: an older one of its own was lost.
        self._waiting[request.puller] = waiter
        self.ring()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._serve())
        try:
            return await answer
        finally:
            self._forget(waiter)

    def ring(self) -> None:
        self._rung.set()

    async def _serve(self) -> None:
        while self._waiting:
            # Pullers that come at the same moment share one read.
            await asyncio.sleep(_GATHER_S)
            self._rung.clear()
            waiters = list(self._waiting.values())
            try:
                hand_out = await self._hand_out([each.caller for each in waiters])
            except Exception as error:
                log.warning("the mailbox could not be read: %s", error)
                self._fail(waiters, error)
                continue
            for waiter in waiters:
                self._answer(waiter, hand_out)
            nearest_s = min((one.until_s for one in self._waiting.values()), default=0.0) - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(READ_EVERY_S, nearest_s))):
                    await self._rung.wait()

    def _answer(self, waiter: _Waiter, hand_out: HandOut) -> None:
        """Answer the waiter, unless there is nothing for it and it may wait longer."""
        call = hand_out.work.get(waiter.caller.name)
        leaves = not hand_out.open or waiter.caller.name in hand_out.leave
        live_s = max(0.0, hand_out.stay_until_unix_s - hand_out.now_unix_s)
        if call is None and not leaves and live_s and time.monotonic() < waiter.until_s:
            return
        self._forget(waiter)
        if waiter.answer.done():
            return
        lease = Lease(word="wait" if not leaves else "leave", live_s=live_s, now_unix_s=hand_out.now_unix_s)
        if call is not None:
            lease = Lease(word="work", live_s=live_s, now_unix_s=hand_out.now_unix_s, **vars(call))
        waiter.answer.set_result(lease)

    def _fail(self, waiters: list[_Waiter], error: Exception) -> None:
        for waiter in waiters:
            self._forget(waiter)
            if not waiter.answer.done():
                waiter.answer.set_exception(error)

    def _forget(self, waiter: _Waiter) -> None:
        if self._waiting.get(waiter.caller.name) is waiter:
            del self._waiting[waiter.caller.name]


class Waiters:
    """All waiting pullers of an event loop, and the boxes that their tokens open."""

    def __init__(self, store: Store, run: RunInThread) -> None:
        self.store = store
        self.run = run
        self._boxes: dict[str, _BoxWaiters] = {}
        self._known: dict[bytes, tuple[str, float]] = {}
        self._lookups: dict[bytes, asyncio.Future[str | None]] = {}
        self._unknown = _UNKNOWN_A_SECOND
        self._counted_s = time.monotonic()

    async def admitted(self, token: str) -> str | None:
        """Return the box that the token opens, from memory for some seconds. None for an unknown token.

        Raises TooManyUnknown while others guess tokens; known ones are served all the same.
        """
        key = hashlib.sha256(token.encode()).digest()
        now_s = time.monotonic()
        box, until_s = self._known.get(key, ("", 0.0))
        if until_s > now_s:
            return box
        self._unknown = min(_UNKNOWN_A_SECOND, self._unknown + (now_s - self._counted_s) * _UNKNOWN_A_SECOND)
        self._counted_s = now_s
        # A token that was valid before is always looked up.
        if not box and self._unknown < 1.0:
            raise TooManyUnknown
        # Requests with the same token at the same moment share one lookup.
        if key not in self._lookups:
            self._lookups[key] = asyncio.ensure_future(self.run(self.store.admitted, token))
        try:
            box_id = await asyncio.shield(self._lookups[key])
        finally:
            self._lookups.pop(key, None)
        if box_id is None:
            self._known.pop(key, None)
            self._unknown -= 1.0
            return None
        while len(self._known) >= _TOKENS_KEPT:
            del self._known[next(iter(self._known))]
        self._known[key] = (box_id, now_s + _ADMITTED_FOR_S)
        return box_id

    async def lease(self, box: str, request: LeaseRequest, token: str = "") -> Lease:
        """Return the puller's lease. `token`: a digest of its token."""
        waiters = self._boxes.get(box)
        if waiters is None:
            waiters = self._boxes[box] = _BoxWaiters(
                lambda callers: self.run(self.store.hand_out, box, callers)
            )
        return await waiters.lease(request, token)

    def ring(self, box: str) -> None:
        """Read this box now, as it may have new calls."""
        if waiters := self._boxes.get(box):
            waiters.ring()
