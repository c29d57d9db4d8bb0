"""What travels between the coordinator and an actor in a user's cloud: a call as bytes, and its answer as bytes.

The same two documents for every cloud; how they are carried is the platform's business. No credential is ever in one:
`run` is a token that only names the run, and weights come inline or by an address that allows one reading. Whatever
cannot be read is a `MalformedMessage` with a code and a reason, never another exception.
"""

from __future__ import annotations

import binascii
import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError

from cloud.actor import json_limits
from training.engine.codec import CodecError, decode, encode
from training.engine.messages import Call
from training.engine.reports import Message, Usage

try:
    import pybase64 as base64
except ImportError:  # Actors do without: what reads one call a second may take its time.
    import base64  # type: ignore[no-redef]

REQUEST_LIMIT_BYTES = 256 * 2**20
ANSWER_LIMIT_BYTES = 256 * 2**20
RESULT_LIMIT_BYTES = (6 * 2**20 - 4096) // 4 * 3
"""Of an answer from AWS Lambda: a response may have 6 MiB as JSON, and base64 makes four bytes of three."""

_APART = ("slot_state", "inputs")
_WORDS_SHOWN = 300
_MOST_WORK = 10**15
"""Of anything that is counted: no call does more, and sums over a job stay numbers that a database stores."""


class MalformedMessage(ValueError):
    """Bytes that are not what they should be. `code` is for programs, `reason` for people.

    Codes of messages in general are here and in `cloud.actor.answers`; each kind of call has codes of its own.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class ActorRequest(Message):
    """One call on its way to an actor.

    It may begin until `not_after_unix_s` on the wall clock and not later: its sender has given it up by then.
    `weights` are inline, or else fetched from `weights_url`; the call says their version and hash.
    """

    run: str
    call: Call
    not_after_unix_s: float
    weights: bytes | None = None
    weights_url: str | None = None
    packages: tuple[str, ...] = ()


class MeasuredWork(Message):
    """The part of a usage that only the body knows."""

    steps: int = Field(0, alias="env_steps", ge=0, le=_MOST_WORK)
    inferences: int = Field(0, ge=0, le=_MOST_WORK)
    trials: int = Field(0, alias="episodes", ge=0, le=_MOST_WORK)
    minibatches: int = Field(0, ge=0, le=_MOST_WORK)
    samples: int = Field(0, ge=0, le=_MOST_WORK)
    macs: int = Field(0, ge=0, le=_MOST_WORK)
    pictures: bool = False
    hessian_products: int = Field(0, ge=0, le=_MOST_WORK)
    steps_s: float = Field(0.0, alias="environment_s", ge=0.0, le=86_400.0, allow_inf_nan=False)
    inference_s: float = Field(0.0, ge=0.0, le=86_400.0, allow_inf_nan=False)
    fetched_bytes: int = Field(0, ge=0, le=_MOST_WORK)
    fetch_s: float = Field(0.0, ge=0.0, le=86_400.0, allow_inf_nan=False)
    compute_s: float = Field(0.0, ge=0.0, le=86_400.0, allow_inf_nan=False)
    push_s: float = Field(0.0, ge=0.0, le=86_400.0, allow_inf_nan=False)
    processor_s: float = Field(0.0, ge=0.0, le=2_592_000.0, allow_inf_nan=False)
    most_memory_mb: int = Field(0, ge=0, le=_MOST_WORK)

    @staticmethod
    def of(usage: Usage) -> MeasuredWork:
        return MeasuredWork(**usage.model_dump(include=set(MeasuredWork.model_fields)))

    def usage(self) -> Usage:
        return Usage(**self.model_dump())


class ActorAnswer(Message):
    """What an actor says of a call. `version` is that of the weights it used.

    `run_s` is what the body took; `calls_before` counts the calls that its process had run, so 0 is a cold start.
    """

    run: str = Field(max_length=100)
    call_id: str = Field(max_length=300)
    status: Literal["done", "failed", "refused"]
    version: int | None = None
    payload: bytes = b""
    slot_state: bytes | None = None
    work: MeasuredWork = MeasuredWork()
    reason: str = Field("", max_length=8000)
    reason_code: str = Field("", max_length=40)
    run_s: float = Field(0.0, ge=0.0, le=86_400.0, allow_inf_nan=False)
    calls_before: int = Field(0, ge=0)
    provisioned: bool = False


def pack_request(request: ActorRequest) -> bytes:
    """The call's weights, state and inputs as raw buffers."""
    document = request.model_dump(exclude={"call"})
    document["call"] = request.call.model_dump(exclude=set(_APART))
    document["slot_state"] = request.call.slot_state
    document["inputs"] = list(request.call.inputs)
    # States of pictures are compressed where they are made, and numbers do not become smaller.
    return encode(document)


def read_request(data: bytes) -> ActorRequest:
    document = _decoded(data, REQUEST_LIMIT_BYTES)
    call = document.get("call")
    if not isinstance(call, dict):
        raise MalformedMessage("shape", "the document holds no call")
    call = {**call, **{name: document.pop(name, None) for name in _APART}}
    try:
        return ActorRequest.model_validate({**document, "call": call})
    except ValidationError as error:
        raise MalformedMessage("shape", f"the document is not a call of ours: {_first(error)}") from None


def pack_answer(answer: ActorAnswer) -> bytes:
    return encode(answer.model_dump(), compress=True)


def read_answer(data: bytes, *, limit_bytes: int = ANSWER_LIMIT_BYTES) -> ActorAnswer:
    """An answer that has the right form. Whether it answers the question is for `cloud.actor.answers` to say."""
    document = _decoded(data, limit_bytes)
    try:
        return ActorAnswer.model_validate(document, strict=True)
    except ValidationError as error:
        raise MalformedMessage("shape", f"the document is not an answer of ours: {_first(error)}") from None


# Clouds whose calls are JSON carry the bytes as base64. The call's id is beside them for logs and for books. Weights
# may be beside them too: they are the same for many calls, so their sender keeps one copy for all.


_HEAD, _BETWEEN, _TAIL = b'{"call": "', b'", "body": "', b'"}'


@dataclass(frozen=True)
class Envelope:
    call_id: str
    data: bytes
    weights: bytes | None = None


def to_json(call_id: str, data: bytes) -> bytes:
    return b"".join(json_pieces(call_id, data, None))


def json_pieces(call_id: str, data: bytes, weights_base64: bytes | None) -> list[bytes]:
    """The parts of the JSON text, in order; that of the weights is the very object that was given."""
    # json.dumps brings the quotes of the id.
    head = _HEAD[:-1] + json.dumps(call_id).encode() + _BETWEEN[1:] + base64.b64encode(data)
    return [head, b'"}'] if weights_base64 is None else [head, b'", "weights": "', weights_base64, b'"}']


def from_json(text: bytes, *, limit_bytes: int) -> Envelope:
    if len(text) > limit_bytes:
        raise MalformedMessage(
            "too_large", f"{len(text):,} bytes came back; at most {limit_bytes:,} are allowed"
        )
    if (plain := _plain(text)) is not None:
        return plain
    try:
        event = json_limits.read_few(text)
    except ValueError as error:
        raise MalformedMessage(
            "shape", f"what came back is no JSON of ours: {error}"[:_WORDS_SHOWN]
        ) from None
    return from_event(event)


def _plain(text: bytes) -> Envelope | None:
    """What is spelt as `to_json` spells it, as answers are; None for any other spelling, which JSON's reader knows."""
    if not (text.startswith(_HEAD) and text.endswith(_TAIL)):
        return None
    call_id, between, body = text[len(_HEAD) : -len(_TAIL)].partition(_BETWEEN)
    if not between or b"\\" in call_id or b'"' in call_id or not call_id.isascii():
        return None
    try:
        return Envelope(call_id.decode(), base64.b64decode(body, validate=True))
    except binascii.Error:
        return None


def from_event(event: Any) -> Envelope:
    """What JSON that has been read carries."""
    if not isinstance(event, dict) or not {"call", "body"} <= set(event) <= {"call", "body", "weights"}:
        raise MalformedMessage("shape", "the event is not one of ours")
    if not all(isinstance(value, str) for value in event.values()):
        raise MalformedMessage("shape", "the event is not one of ours")
    try:
        data = base64.b64decode(event["body"], validate=True)
        weights = base64.b64decode(event["weights"], validate=True) if "weights" in event else None
    except (binascii.Error, ValueError):
        raise MalformedMessage("shape", "the event's body is not base64") from None
    return Envelope(event["call"], data, weights)


def _decoded(data: bytes, limit_bytes: int) -> dict[str, Any]:
    try:
        return decode(data, body_limit_bytes=limit_bytes)
    except (CodecError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise MalformedMessage("codec", f"the bytes cannot be read: {error}") from None


def _first(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}"[:_WORDS_SHOWN]
