"""Limits on request bodies: their size, their progress and their number at once, checked before a byte is read; and on
the number of values in a document.

Anyone may send a megabyte, which stays in memory. Who may send more is known from the headers alone, and only what
they send is written to disk.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import IO, Any
from weakref import WeakValueDictionary

from django.core.exceptions import RequestAborted

from webapp.database.storage_faults import storage_fault

VALUES_LIMIT = 10_000
"""A fault in each value becomes an error with a sentence: 240 kB of wrong values took 65 MB and 3 s."""


def check_values(document: Any) -> None:
    """Raise ValueError if the lists and tables of `document` hold more than VALUES_LIMIT values together."""
    waiting, count = [document], 0
    while waiting:
        here = waiting.pop()
        if not isinstance(here, dict | list | tuple):
            continue
        count += len(here)
        if count > VALUES_LIMIT:
            raise ValueError(f"It holds more than {VALUES_LIMIT:,} values; leave out what it does not need.")
        waiting.extend(here.values() if isinstance(here, dict) else here)


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
UploadLimit = Callable[[Scope], Awaitable[int]]

BODY_LIMIT_BYTES = 2**20
PROGRESS_BYTES = 2**14
PROGRESS_WITHIN_S = 30.0
"""Each such time must bring at least this much; otherwise a slow sender would hold a place for ever."""
BODIES_AN_ADDRESS = 16
BODIES_AT_ONCE = 64
UPLOADS_AT_ONCE = 4
PLACE_WITHIN_S = 10.0


class BodyRefused(Exception):
    """The body is refused. Holds the status of the response, the reason, and what its sender can do."""

    def __init__(self, status: int, why: str, fix: str) -> None:
        super().__init__(f"{why} {fix}")
        self.status, self.why, self.fix = status, why, fix


class Bodies:
    """Receives bodies for one event loop. `upload_limit` returns how many bytes a sender of large files may send."""

    def __init__(self, upload_limit: UploadLimit) -> None:
        self._upload_limit = upload_limit
        self._all = asyncio.Semaphore(BODIES_AT_ONCE)
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)
        self._by_address: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def taken(self, scope: Scope, receive: Receive) -> AsyncIterator[IO[bytes]]:
        """Receive the whole body. Raises BodyRefused, or RequestAborted if its sender left.

        It has its place until the block ends: a body that waits for a thread takes as much as one that is coming.
        """
        size = _declared(scope)
        if size == 0:
            yield io.BytesIO()
            return
        limit = BODY_LIMIT_BYTES
        if size is None or size > limit:
            limit = max(limit, await self._upload_limit(scope))
        if size is not None and size > limit:
            raise _too_large(limit)
        places = [self._uploads] if limit > BODY_LIMIT_BYTES else [self._of(_address(scope)), self._all]
        async with _held(places):
            body = await _received(receive, limit)
            try:
                yield body
            except BaseException:
                body.close()
                raise

    def _of(self, address: str) -> asyncio.Semaphore:
        return self._by_address.setdefault(address, asyncio.Semaphore(BODIES_AN_ADDRESS))


def _declared(scope: Scope) -> int | None:
    """The size that the headers give; None if the body comes in chunks."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    size = headers.get(b"content-length", b"0")
    if not size.isdigit() or len(size) > 18:
        raise BodyRefused(400, "Content-Length is not a number of bytes.", "Send the size of the body.")
    return int(size)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


@asynccontextmanager
async def _held(places: list[asyncio.Semaphore]) -> AsyncIterator[None]:
    """Hold one place of each kind while the block runs. Raises BodyRefused if there is none."""
    held: list[asyncio.Semaphore] = []
    try:
        try:
            async with asyncio.timeout(PLACE_WITHIN_S):
                for place in places:
                    await place.acquire()
                    held.append(place)
        except TimeoutError:
            raise BodyRefused(
                503, "Too many requests are being received at once.", "Send it again in a few seconds."
            ) from None
        yield
    finally:
        for place in held:
            place.release()


async def _received(receive: Receive, limit: int) -> IO[bytes]:
    body = _Body(limit)
    try:
        more = True
        while more:
            async with asyncio.timeout(PROGRESS_WITHIN_S):
                more = await _some(receive, body)
        return await body.opened()
    except TimeoutError:
        body.close()
        raise BodyRefused(
            408,
            f"Less than {PROGRESS_BYTES // 1024} kB of the request came within {PROGRESS_WITHIN_S:.0f} s.",
            "Send it again over a better connection.",
        ) from None
    except BaseException:
        body.close()
        raise


async def _some(receive: Receive, body: _Body) -> bool:
    """Receive as much as counts as progress, or the rest. Returns whether there is more."""
    enough = body.size + PROGRESS_BYTES
    while body.size < enough:
        message = await receive()
        if message["type"] != "http.request":
            raise RequestAborted
        await body.add(message.get("body", b""))
        if not message.get("more_body", False):
            return False
    return True


class _Body:
    """The received part of a body: in memory up to the limit for everyone, on disk beyond it."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._memory = bytearray()
        self._file: IO[bytes] | None = None

    async def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._limit:
            raise _too_large(self._limit)
        self._memory += piece
        if len(self._memory) > BODY_LIMIT_BYTES:
            await self._write()

    async def opened(self) -> IO[bytes]:
        """The file, at its beginning."""
        if self._file is None:
            return io.BytesIO(self._memory)
        await self._write()
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    async def _write(self) -> None:
        piece, self._memory = self._memory, bytearray()
        try:
            if self._file is None:
                # Unbuffered, so that a full disk is met here and not when it is closed.
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `close` ends it, or the caller of `opened`
            # A disk may be slow, and everyone else waits for this loop.
            await asyncio.to_thread(_write_all, self._file, piece)
        except OSError as error:
            fault = storage_fault(error)
            if fault is None:
                raise
            raise BodyRefused(fault.status, fault.why, fault.fix) from error


def _write_all(file: IO[bytes], piece: bytearray) -> None:
    left = memoryview(piece)
    while left:
        left = left[file.write(left) :]


def _too_large(limit: int) -> BodyRefused:
    fix = "Send less."
    if limit == BODY_LIMIT_BYTES:
        fix = (
            "Send less. Only members of a project, signed in, may send more: editors a table of data, owners the bill"
            " of a cloud."
        )
    return BodyRefused(413, f"The request is larger than allowed: at most {limit // 10**6:,} MB.", fix)
