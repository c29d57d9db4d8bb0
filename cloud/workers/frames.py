"""The messages of a pool and its workers: length-prefixed msgpack of frozen models; never pickle."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator
from typing import Annotated, Generic, Literal, TypeVar

import msgpack
from pydantic import Field, TypeAdapter

from cloud.failures import OtherCode
from training.engine import msgpack_limits
from training.engine.messages import BlobRef, Call, FaultCode
from training.engine.reports import Message, Usage

_LENGTH = struct.Struct("<I")
FRAME_LIMIT_BYTES = 2**30
BLOBS_KEPT = 4


class FrameError(ValueError):
    """The other side sent something that is not a valid frame."""


class Hold(Message):
    """Keep these weights for the calls that name them."""

    kind: Literal["hold"] = "hold"
    ref: BlobRef
    data: bytes


class RunFrame(Message):
    """Run this call; its weights were sent before."""

    kind: Literal["run"] = "run"
    call: Call


class Ready(Message):
    """The worker has imported what it needs and takes calls."""

    kind: Literal["ready"] = "ready"


class DoneFrame(Message):
    kind: Literal["done"] = "done"
    call_id: str
    payload: bytes
    slot_state: bytes | None
    usage: Usage
    run_s: float


class Broke(Message):
    """The call's body raised an error; the worker continues."""

    kind: Literal["broke"] = "broke"
    call_id: str
    reason: str
    reason_code: FaultCode | OtherCode
    run_s: float


ToWorker = Hold | RunFrame
FromWorker = Ready | DoneFrame | Broke

_TO_WORKER: TypeAdapter[ToWorker] = TypeAdapter(Annotated[Hold | RunFrame, Field(discriminator="kind")])
_FROM_WORKER: TypeAdapter[FromWorker] = TypeAdapter(
    Annotated[Ready | DoneFrame | Broke, Field(discriminator="kind")]
)


def pack(message: ToWorker | FromWorker) -> bytes:
    """Return one frame: the length of the body in 4 bytes, little endian, then the body."""
    body: bytes = msgpack.packb(message.model_dump(), use_bin_type=True)
    if len(body) > FRAME_LIMIT_BYTES:
        raise FrameError(f"a message of {len(body)} bytes; at most {FRAME_LIMIT_BYTES} are allowed")
    return _LENGTH.pack(len(body)) + body


def to_worker(body: bytes) -> ToWorker:
    return _TO_WORKER.validate_python(_plain(body))


def from_worker(body: bytes) -> FromWorker:
    return _FROM_WORKER.validate_python(_plain(body))


def _plain(body: bytes) -> object:
    return msgpack_limits.unpack(body)


class Inbox:
    """Collects received bytes and returns whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def bodies(self) -> Iterator[bytes]:
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            if length > FRAME_LIMIT_BYTES:
                raise FrameError(f"a frame claims {length} bytes; at most {FRAME_LIMIT_BYTES} are allowed")
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            body = bytes(memoryview(self._bytes)[_LENGTH.size : end])
            del self._bytes[:end]
            yield body


Value = TypeVar("Value")


class KeptBlobs(Generic[Value]):
    """The last few weights by hash. Pool and worker follow the same rule, so the pool knows what the worker has."""

    def __init__(self) -> None:
        self._by_sha256: OrderedDict[str, Value] = OrderedDict()

    def add(self, sha256: str, value: Value) -> None:
        self._by_sha256[sha256] = value
        while len(self._by_sha256) > BLOBS_KEPT:
            self._by_sha256.popitem(last=False)

    def get(self, sha256: str) -> Value | None:
        return self._by_sha256.get(sha256)

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._by_sha256
