"""The envelope of an answer in JSON: read however it is spelt, refused before it costs memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from cloud.actor import wire
from cloud.actor.answers import answer_to
from cloud.actor.blobs import BlobShelf
from cloud.actor.body import ActorMemory
from cloud.actor.wire import MalformedMessage
from cloud.platforms.aws import invoke as aws_invoke
from cloud.workers import frames
from tests.cloud import calls
from tests.memory import memory_peak
from training.engine.messages import Call


@pytest.fixture
def call() -> Call:
    return calls.rollout("c1", BlobShelf().publish(0, calls.weights()))


def test_json_carries_the_bytes_and_the_calls_id() -> None:
    text = wire.to_json('odd "id"', b"\x00\xff" * 50)
    assert wire.from_json(text, limit_bytes=10_000) == wire.Envelope('odd "id"', b"\x00\xff" * 50)
    pieces = wire.json_pieces("c", b"call", base64.b64encode(b"weights"))
    assert wire.from_json(b"".join(pieces), limit_bytes=10_000) == wire.Envelope("c", b"call", b"weights")
    for broken in (b"{", b"[]", b'{"call": 1, "body": ""}', b'{"call": "c", "body": "***"}', b"[" * 10**5):
        with pytest.raises(MalformedMessage):
            wire.from_json(broken, limit_bytes=10**6)
    with pytest.raises(MalformedMessage, match="at most"):
        wire.from_json(text, limit_bytes=20)


def test_what_an_actor_cannot_read_is_refused_with_the_reason(call: Call) -> None:
    answer, result = answer_to(call, "run-token", ActorMemory().answer(b"not a call"))
    assert (answer.status, answer.reason_code, result) == ("refused", "codec", None)


def test_what_is_spelt_as_we_spell_it_needs_no_reader_of_json() -> None:
    """Which would copy a large body twice."""
    assert wire._plain(wire.to_json("r1-a1", b"data")) == wire.Envelope("r1-a1", b"data")


@pytest.mark.parametrize("call_id", ["r1-a1", "a\\b", 'with "quotes" and \\', "ünï"])
def test_an_answer_is_read_however_its_json_is_spelt(call_id: str) -> None:
    data = bytes(range(256)) * 4
    ours = wire.to_json(call_id, data)
    document = json.loads(ours)
    others = [
        json.dumps(document, separators=(",", ":")),
        json.dumps(document, indent=1, ensure_ascii=False),
        json.dumps({"body": document["body"], "call": call_id}),
    ]
    for text in (ours, *(other.encode() for other in others)):
        assert wire.from_json(text, limit_bytes=10_000) == wire.Envelope(call_id, data)


@pytest.mark.parametrize(
    "text",
    [
        b'{"call": "c", "body": "AAAA", "body": "A!AA"}',
        b'{"call": "c", "body": "A\\u0041AA"',
        b'{"call": "c", "body": "AAA*"}',
        b'{"call": "c\xff", "body": "AAAA"}',
    ],
)
def test_what_only_looks_like_an_answer_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedMessage):
        wire.from_json(text, limit_bytes=10_000)


@pytest.mark.parametrize(
    "made", [lambda size: b"[" + b"{}," * (size // 3 - 1) + b"0]", lambda size: b'{"a":' * (size // 5)]
)
def test_json_of_very_many_values_is_refused_before_it_is_read(made: Callable[[int], bytes]) -> None:
    """Six megabytes, which a function may answer with, would become 150 MB of tables."""
    limit_bytes = 6 * 2**20
    text = made(limit_bytes)
    with memory_peak() as peak:
        with pytest.raises(MalformedMessage):
            wire.from_json(text, limit_bytes=limit_bytes)
        failure = aws_invoke.function_error(text, "", None)
    assert peak.grown_bytes <= 2 * limit_bytes + 32 * 2**20
    assert failure.code == "error"


def test_a_worker_that_sends_tables_without_end_is_refused_before_they_are_made() -> None:
    size = 4 * 2**20
    body = b"\x81\xa4kind\xdd" + size.to_bytes(4, "big") + b"\x80" * size
    with memory_peak() as peak, pytest.raises(ValueError, match="values"):
        frames.from_worker(body)
    assert peak.grown_bytes <= 2 * size + 32 * 2**20
