"""The actor gateway as an ASGI application: the token first, then the size, and only then what was sent.

It keeps no session, reads no cookie and looks into no answer. See `cloud.actor.protocol` for what is said.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qs

from pydantic import ValidationError

from cloud.actor import protocol
from cloud.gateway.waiters import Desk, TooManyUnknown
from training.reports import Message

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Said = TypeVar("Said", bound=Message)

_BEARER = re.compile(rb"Bearer ([A-Za-z0-9._-]{20,200})")
_WORDS_LIMIT_BYTES = 4096
_READ_WITHIN_S = 120.0
_ANSWERS_AT_ONCE = 64
_BEFORE_A_BODY_IS_READ = (401, 404, 405, 429)
"""Whoever is refused so may be anyone: the connection ends, instead of taking in whatever else they send."""
_LET_GO_WITHIN_S = 1.0
_LET_GO_BYTES = 16 * 2**20
_JSON, _BYTES = b"application/json", b"application/octet-stream"


class _No(Exception):
    """A refusal as a status and words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Gone(Exception):
    """Whoever asked does not listen any more."""


class Door:
    """Serves `/actor/v1/`; one desk for each event loop that it is called on."""

    def __init__(self, desk: Callable[[], Desk]) -> None:
        self._desk = desk
        self._answers = asyncio.Semaphore(_ANSWERS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, kind = 200, _JSON
        try:
            kind, body = await self._answered(scope, receive)
        except Gone:
            return
        except _No as no:
            status, body = no.status, str(no).encode()
        except Exception as error:
            # Never the error's own words: they may hold what is nobody's business.
            log.warning("the actor gateway failed: %s", type(error).__name__)
            status, body = 503, b"try again"
        headers = [
            (b"content-type", kind if status == 200 else b"text/plain"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        unread = status in _BEFORE_A_BODY_IS_READ
        if unread:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": unread})
        if unread:
            await let_go(receive)
            await send({"type": "http.response.body", "body": b""})

    async def _answered(self, scope: Scope, receive: Receive) -> tuple[bytes, bytes]:
        path, method = scope["path"], scope["method"]
        weights = path.startswith(protocol.WEIGHTS)
        if not weights and path not in (protocol.LEASE, protocol.HEARTBEAT, protocol.RESULT, protocol.LEAVE):
            raise _No(404, "there is nothing at this address")
        if method != ("GET" if weights else "POST"):
            raise _No(405, "not asked in this way")
        desk = self._desk()
        box, token = await _admitted(desk, scope)
        if weights:
            return _BYTES, await _weights(desk, box, path.removeprefix(protocol.WEIGHTS))
        if path == protocol.RESULT:
            async with self._answers:
                return _JSON, await _result(desk, box, scope, receive)
        words = await _body(scope, receive, _WORDS_LIMIT_BYTES)
        if path == protocol.LEASE:
            ask = _said(protocol.Ask, words)
            return _BYTES, protocol.pack_lease(await _while_listening(desk.lease(box, ask, token), receive))
        holding = _said(protocol.Holding, words)
        if path == protocol.LEAVE:
            await desk.run(desk.store.leave, box, holding.puller)
            desk.ring(box)
            return _JSON, b"{}"
        beat = await desk.run(desk.store.beat, box, holding.puller, holding.call_id)
        return _JSON, beat.model_dump_json().encode()


async def let_go(receive: Receive) -> None:
    """Drop what a refused sender still sends, for a moment: a client that is cut off does not read why."""
    dropped = 0
    try:
        async with asyncio.timeout(_LET_GO_WITHIN_S):
            while dropped < _LET_GO_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


async def _admitted(desk: Desk, scope: Scope) -> tuple[str, str]:
    """The box, and a digest of the token that opened it."""
    shown = [value for name, value in scope["headers"] if name == b"authorization"]
    token = _BEARER.fullmatch(shown[0]) if len(shown) == 1 else None
    try:
        box = await desk.admitted(token[1].decode()) if token else None
    except TooManyUnknown:
        raise _No(429, "too many unknown tokens; try again") from None
    if box is None:
        raise _No(401, "this token opens nothing")
    return box, hashlib.sha256(shown[0]).hexdigest()[:16]


async def _weights(desk: Desk, box: str, sha256: str) -> bytes:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise _No(404, "there is nothing at this address")
    blob = await desk.run(desk.store.weights, box, sha256)
    if blob is None:
        raise _No(404, "these weights are not here, or not any more")
    return blob


async def _result(desk: Desk, box: str, scope: Scope, receive: Receive) -> bytes:
    query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=4)
    try:
        puller, call_id = (query[name][0] for name in ("puller", "call"))
        holding = protocol.Holding(puller=puller, call_id=call_id)
    except (KeyError, ValidationError):
        raise _No(400, "an answer names its puller and its call") from None
    room = await desk.run(desk.store.room, box, holding.puller, holding.call_id)
    # One that nobody wants is read and let go, for its sender is in the middle of it.
    answer = await _body(scope, receive, room or 2**20, keep=room > 0)
    receipt = await desk.run(desk.store.receive, box, holding.puller, holding.call_id, answer)
    return receipt.model_dump_json().encode()


async def _body(scope: Scope, receive: Receive, most_bytes: int, *, keep: bool = True) -> bytes:
    """What was sent, of which not a byte more is taken in than allowed."""
    told = [value for name, value in scope["headers"] if name == b"content-length"]
    if told and (not told[0].isdigit() or int(told[0]) > most_bytes):
        raise _No(413, f"at most {most_bytes:,} bytes are taken here")
    taken = bytearray()
    held = 0
    try:
        async with asyncio.timeout(_READ_WITHIN_S):
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Gone
                piece = message.get("body", b"")
                held += len(piece)
                if held > most_bytes:
                    raise _No(413, f"at most {most_bytes:,} bytes are taken here")
                if keep:
                    taken += piece
                more = message.get("more_body", False)
    except TimeoutError:
        raise _No(408, "it did not come in time") from None
    return bytes(taken)


def _said(model: type[Said], words: bytes) -> Said:
    try:
        return model.model_validate_json(words)
    except ValidationError:
        raise _No(400, "these words are not understood") from None


async def _while_listening(work: Awaitable[protocol.Lease], receive: Receive) -> protocol.Lease:
    """The work's result; the work is broken off when nobody listens any more."""
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Gone
    finally:
        working.cancel()
        listening.cancel()
