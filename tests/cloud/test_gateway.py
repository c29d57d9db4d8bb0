"""The gateway's door and desk: who is let in, what is read, and what hundreds of waiting pullers cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from cloud.actor import protocol
from cloud.actor.protocol import LONGEST_WAIT_S
from cloud.platforms.gateway.asgi import GatewayApp
from cloud.platforms.gateway.store import HandOut, WaitingPuller
from cloud.platforms.gateway.waiters import Waiters
from tests.cloud.memory_mailbox import MemoryMailbox
from training.engine.ports import Offer

pytestmark = pytest.mark.asyncio

Result = TypeVar("Result")
_BODY_LIMIT = 1000


class Site:
    """A door called without a server between, which counts what it asks of the store."""

    def __init__(self) -> None:
        self.mailbox = MemoryMailbox()
        self.mailbox.stay(1000.0)
        self.token = self.mailbox.new_token()
        self.requested: list[str] = []
        self.door = GatewayApp(lambda: self.waiters)
        self.waiters = Waiters(self.mailbox, self._run)
        loop = asyncio.get_running_loop()
        self.mailbox.on_offer(lambda: loop.call_soon_threadsafe(self.waiters.ring, "memory"))

    async def _run(self, work: Callable[..., Result], *arguments: object) -> Result:
        self.requested.append(work.__name__)
        await asyncio.sleep(0)
        return work(*arguments)

    def offer(self, *names: str) -> None:
        self.mailbox.offer([Offer(name, b"do it", 2e9, 10.0, 10.0, _BODY_LIMIT) for name in names])

    async def ask(
        self,
        path: str,
        pieces: Sequence[bytes] = (b"",),
        *,
        method: str = "POST",
        token: str | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        query: bytes = b"",
        leaves_after_s: float | None = None,
    ) -> Answer:
        """`headers` come with the token's; a caller who `leaves_after_s` hangs up then."""
        shown = f"Bearer {self.token if token is None else token}".encode()
        answer, left = Answer(), list(pieces)

        async def receive() -> dict[str, Any]:
            if left:
                answer.read += not answer.status
                piece = left.pop(0)
                return {"type": "http.request", "body": piece, "more_body": bool(left)}
            await asyncio.sleep(3600 if leaves_after_s is None else leaves_after_s)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            answer.status = message.get("status", answer.status)
            answer.hangs_up = answer.hangs_up or (b"connection", b"close") in message.get("headers", ())
            answer.body += message.get("body", b"")

        scope = {
            "path": path,
            "method": method,
            "headers": [(b"authorization", shown), *headers],
            "query_string": query,
        }
        await self.door(scope, receive, send)
        return answer

    async def lease(self, puller: str, wait_s: float = 0.0, **options: Any) -> Answer:
        words = protocol.LeaseRequest(puller=puller, unit="u", wait_s=wait_s).model_dump_json().encode()
        return await self.ask(protocol.LEASE, [words], **options)


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """No puller is answered by the regular read, however long this machine is busy with something else."""
    monkeypatch.setattr("cloud.platforms.gateway.waiters.READ_EVERY_S", 10 * LONGEST_WAIT_S)


class Answer:
    """`read`: how many pieces of the body were, before there was an answer."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.read = 0
        self.hangs_up = False

    @property
    def lease(self) -> protocol.Lease:
        assert self.status == 200
        return protocol.read_lease(self.body)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/actor/v1/lease", "GET", 405),
        ("/actor/v1/weights/" + "ab" * 32, "POST", 405),
        ("/actor/v1/", "POST", 404),
        ("/actor/v1/lease/", "POST", 404),
        ("/actor/v1/weights/../../secret", "GET", 404),
        ("/actor/v1/weights/" + "ab" * 32, "GET", 404),
        ("/actor/v1/result", "POST", 400),
        ("/actor/v1/lease", "POST", 400),
    ],
)
async def test_what_is_not_said_is_not_understood(path: str, method: str, status: int) -> None:
    assert (await Site().ask(path, [b"{}"], method=method)).status == status


async def test_nothing_is_read_from_a_sender_without_a_token() -> None:
    site = Site()
    for token in ("", "short", "x" * 43, "ü" * 30, site.token + "x"):
        answer = await site.ask(protocol.RESULT, [b"x" * 100], token=token, query=b"puller=p&call=c")
        assert (answer.status, answer.read) == (401, 0)
    answer = await site.ask(protocol.LEASE, [b"{}"], headers=[(b"authorization", b"Bearer " + b"y" * 43)])
    assert (answer.status, answer.read) == (401, 0), "two tokens are none"


async def test_the_connection_ends_of_who_is_refused_unread_and_stays_of_who_is_known() -> None:
    site = Site()
    assert (await site.ask(protocol.RESULT, [b"x" * 2**16] * 2**10, token="y" * 43)).hangs_up
    assert (await site.ask("/actor/v1/", [b"x"])).hangs_up
    assert not (await site.lease("p1")).hangs_up


async def test_guessing_soon_costs_no_questions_and_those_who_are_known_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cloud.platforms.gateway.waiters.time", SimpleNamespace(monotonic=lambda: 1000.0))
    site = Site()
    assert (await site.lease("p1")).status == 200
    statuses = [(await site.ask(protocol.LEAVE, [b"{}"], token=f"{n:043}")).status for n in range(100)]
    assert statuses == [401] * 10 + [429] * 90, "ten a second, and all of them come at one moment"
    assert site.requested.count("admitted") == 11
    assert (await site.lease("p1")).status == 200


async def test_a_body_has_its_size_before_it_is_read() -> None:
    site = Site()
    site.offer("c")
    assert (await site.lease("p")).lease.call_id == "c"
    query = b"puller=p&call=c"
    reported = await site.ask(
        protocol.RESULT, [b"x"], query=query, headers=[(b"content-length", str(_BODY_LIMIT + 1).encode())]
    )
    assert (reported.status, reported.read) == (413, 0)
    without_size = await site.ask(protocol.RESULT, [b"x" * 600] * 100, query=query)
    assert (without_size.status, without_size.read) == (413, 2)
    assert site.mailbox.take(0.0) == []
    words = await site.ask(protocol.LEASE, [b" " * 5000])
    assert words.status == 413


async def test_an_answer_passes_through_unread() -> None:
    site = Site()
    site.offer("c")
    await site.lease("p")
    answer = await site.ask(protocol.RESULT, [b"not ", b"a document"], query=b"puller=p&call=c")
    assert answer.body == b'{"word":"taken"}'
    assert [one.answer for one in site.mailbox.take(0.0)] == [b"not a document"]


async def test_who_waits_gets_a_call_as_soon_as_there_is_one(seldom: None) -> None:
    site = Site()
    waiting = [asyncio.create_task(site.lease(f"p{n}", LONGEST_WAIT_S)) for n in range(3)]
    await asyncio.sleep(0.05)
    site.offer("c1", "c2")
    done: set[asyncio.Task[Answer]] = set()
    still = set(waiting)
    async with asyncio.timeout(LONGEST_WAIT_S / 2):
        while len(done) < 2:
            more, still = await asyncio.wait(still, return_when=asyncio.FIRST_COMPLETED)
            done |= more
    assert {task.result().lease.call_id for task in done} == {"c1", "c2"}
    site.mailbox.close()
    site.waiters.ring("memory")
    (last,) = still
    assert (await last).lease.word == "leave"


async def test_who_waits_in_vain_is_answered_in_time(seldom: None) -> None:
    site = Site()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    lease = (await site.lease("p", 0.2)).lease
    assert (lease.word, lease.call_id) == ("wait", "")
    assert 0.2 <= loop.time() - began_s < LONGEST_WAIT_S / 2
    assert 990 < lease.live_s <= 1000


async def test_who_hangs_up_gets_nothing() -> None:
    site = Site()
    assert (await site.lease("p1", 20.0, leaves_after_s=0.1)).status == 0
    site.offer("c")
    await asyncio.sleep(0.05)
    assert (await site.lease("p2")).lease.call_id == "c"


async def test_what_cannot_be_looked_up_may_be_requested_again() -> None:
    site = Site()

    def broken(box: str, callers: Sequence[WaitingPuller]) -> HandOut:
        raise OSError("the password is swordfish")

    site.mailbox.hand_out = broken  # type: ignore[method-assign]
    answer = await site.lease("p", 5.0)
    assert (answer.status, answer.body) == (503, b"try again")


async def test_two_hundred_who_wait_are_one_look_a_second() -> None:
    site = Site()
    waiting = [asyncio.create_task(site.lease(f"p{n}", 20.0)) for n in range(200)]
    await asyncio.sleep(2.5)
    assert site.requested.count("hand_out") <= 5
    assert site.requested.count("admitted") == 1
    site.offer(*(f"c{n}" for n in range(200)))
    answers = await asyncio.gather(*waiting)
    assert len({one.lease.call_id for one in answers}) == 200
    assert site.requested.count("hand_out") <= 8
