"""The actor gateway as an ASGI application: it checks the token first, then the size, and only then reads the body.

It keeps no session, reads no cookie and parses no answer. `cloud.actor.protocol` has the messages.
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
from cloud.platforms.gateway.waiters import TooManyUnknown, Waiters
from training.engine.reports import Message

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Parsed = TypeVar("Parsed", bound=Message)

_BEARER = re.compile(rb"Bearer ([A-Za-z0-9._-]{20,200})")
_MESSAGE_LIMIT_BYTES = 4096
_READ_WITHIN_S = 120.0
_ANSWERS_AT_ONCE = 64
_BEFORE_A_BODY_IS_READ = (401, 404, 405, 429)
"""A sender that is refused so may be anyone: the connection ends instead of reading everything else it sends."""
_DISCARD_WITHIN_S = 1.0
_DISCARD_BYTES = 16 * 2**20
_JSON, _BYTES = b"application/json", b"application/octet-stream"


class _Refused(Exception):
    """A refusal: a status and its text."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Disconnected(Exception):
    """The client has closed the connection."""


class GatewayApp:
    """Serves `/actor/v1/`. `waiters` returns those of the running event loop."""

    def __init__(self, waiters: Callable[[], Waiters]) -> None:
        self._waiters = waiters
        self._answers = asyncio.Semaphore(_ANSWERS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, kind = 200, _JSON
        try:
            kind, body = await self._answer(scope, receive)
        except Disconnected:
            return
        except _Refused as refused:
            status, body = refused.status, str(refused).encode()
        except Exception as error:
            # Never the error's own text, which may hold secrets.
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
            await discard_body(receive)
            await send({"type": "http.response.body", "body": b""})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[bytes, bytes]:
        """Return the answer's content type and body."""
        path, method = scope["path"], scope["method"]
        weights = path.startswith(protocol.WEIGHTS)
        if not weights and path not in (protocol.LEASE, protocol.HEARTBEAT, protocol.RESULT, protocol.LEAVE):
            raise _Refused(404, "there is nothing at this address")
        if method != ("GET" if weights else "POST"):
            raise _Refused(405, "this method is not allowed here")
        waiters = self._waiters()
        box, token = await _admitted(waiters, scope)
        if weights:
            return _BYTES, await _weights(waiters, box, path.removeprefix(protocol.WEIGHTS))
        if path == protocol.RESULT:
            async with self._answers:
                return _JSON, await _result(waiters, box, scope, receive)
        message = await _body(scope, receive, _MESSAGE_LIMIT_BYTES)
        if path == protocol.LEASE:
            request = _parsed(protocol.LeaseRequest, message)
            lease = await _while_connected(waiters.lease(box, request, token), receive)
            return _BYTES, protocol.pack_lease(lease)
        holding = _parsed(protocol.HeldCall, message)
        if path == protocol.LEAVE:
            await waiters.run(waiters.store.leave, box, holding.puller)
            waiters.ring(box)
            return _JSON, b"{}"
        beat = await waiters.run(waiters.store.beat, box, holding.puller, holding.call_id)
        return _JSON, beat.model_dump_json().encode()


async def discard_body(receive: Receive) -> None:
    """Discard a refused request's body for a moment: a client whose sending is cut off does not read the refusal."""
    dropped = 0
    try:
        async with asyncio.timeout(_DISCARD_WITHIN_S):
            while dropped < _DISCARD_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


async def _admitted(waiters: Waiters, scope: Scope) -> tuple[str, str]:
    """Return the box that the token opens, and a digest of the token."""
    headers = [value for name, value in scope["headers"] if name == b"authorization"]
    token = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
    try:
        box = await waiters.admitted(token[1].decode()) if token else None
    except TooManyUnknown:
        raise _Refused(429, "too many unknown tokens; try again") from None
    if box is None:
        raise _Refused(401, "this token opens nothing")
    return box, hashlib.sha256(headers[0]).hexdigest()[:16]


async def _weights(waiters: Waiters, box: str, sha256: str) -> bytes:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise _Refused(404, "there is nothing at this address")
    blob = await waiters.run(waiters.store.weights, box, sha256)
    if blob is None:
        raise _Refused(404, "these weights are not here, or not any more")
    return blob


async def _result(waiters: Waiters, box: str, scope: Scope, receive: Receive) -> bytes:
    query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=4)
    try:
        puller, call_id = (query[name][0] for name in ("puller", "call"))
        holding = protocol.HeldCall(puller=puller, call_id=call_id)
    except (KeyError, ValidationError):
        raise _Refused(400, "an answer names its puller and its call") from None
    room = await waiters.run(waiters.store.room, box, holding.puller, holding.call_id)
    # An unwanted answer is read and discarded, because its sender is already sending it.
    answer = await _body(scope, receive, room or 2**20, keep=room > 0)
    receipt = await waiters.run(waiters.store.receive, box, holding.puller, holding.call_id, answer)
    return receipt.model_dump_json().encode()


async def _body(scope: Scope, receive: Receive, most_bytes: int, *, keep: bool = True) -> bytes:
    """Return the body, empty without `keep`. Never reads more than `most_bytes`; _Refused if it is larger."""
    declared = [value for name, value in scope["headers"] if name == b"content-length"]
    if declared and (not declared[0].isdigit() or int(declared[0]) > most_bytes):
        raise _Refused(413, f"at most {most_bytes:,} bytes are accepted here")
    kept = bytearray()
    received = 0
    try:
        async with asyncio.timeout(_READ_WITHIN_S):
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Disconnected
                piece = message.get("body", b"")
                received += len(piece)
                if received > most_bytes:
                    raise _Refused(413, f"at most {most_bytes:,} bytes are accepted here")
                if keep:
                    kept += piece
                more = message.get("more_body", False)
    except TimeoutError:
        raise _Refused(408, "it did not come in time") from None
    return bytes(kept)


def _parsed(model: type[Parsed], message: bytes) -> Parsed:
    try:
        return model.model_validate_json(message)
    except ValidationError:
        raise _Refused(400, "this message is not understood") from None


async def _while_connected(work: Awaitable[protocol.Lease], receive: Receive) -> protocol.Lease:
    """Return the work's result. Raises Disconnected, and cancels the work, if the client closes the connection."""
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Disconnected
    finally:
        working.cancel()
        listening.cancel()
