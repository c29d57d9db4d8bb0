"""Documents made to cost memory: refused, and what they take at their peak is measured, not only that they fail."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory import memory_peak
from training.engine.codec import ENTRIES_LIMIT, HEADER_LIMIT_BYTES, CodecError, decode, encode

MEGABYTE = 2**20
SLACK_BYTES = 32 * MEGABYTE
BODY_LIMIT_BYTES = 16 * MEGABYTE


def document(
    arrays: list[Any],
    body: bytes,
    *,
    body_bytes: int | None = None,
    compressed: bool = False,
    values: Any = None,
) -> bytes:
    """A document as `encode` lays it out, with whatever an attacker writes into it."""
    stated = len(body) if body_bytes is None else body_bytes
    header = msgpack.packb({"values": values or {}, "arrays": arrays, "body_bytes": stated})
    return with_header(header, body, compressed=compressed)


def with_header(header: bytes, body: bytes = b"", *, compressed: bool = False) -> bytes:
    return struct.pack("<5sBI", b"STRL1", int(compressed), len(header)) + header + body


def in_header(values: bytes) -> bytes:
    """A document whose `values` are these bytes of msgpack, as many of them as a header may have."""
    assert len(values) < HEADER_LIMIT_BYTES
    name = msgpack.packb("arrays") + b"\x90" + msgpack.packb("body_bytes") + b"\x00"
    return with_header(b"\x83" + name + msgpack.packb("values") + values)


def packed(size: int, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(bytes(size))


def without_its_size(size: int) -> bytes:
    return packed(size, write_content_size=False)


def with_a_wide_window(size: int) -> bytes:
    """A frame that makes its reader keep 128 MB at hand, and breaks off."""
    wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=True)
    return zstandard.ZstdCompressor(compression_params=wide).compress(np.random.default_rng(0).bytes(size))[
        :-9
    ]


def many(value: bytes, count: int) -> bytes:
    """A list of equal values, as one value of a table."""
    return b"\x81\xa1a\xdd" + struct.pack(">I", count) + value * count


SPACE = HEADER_LIMIT_BYTES - 100
BOMBS = [
    pytest.param(
        lambda: document([], packed(128 * MEGABYTE), body_bytes=10, compressed=True),
        id="unpacks to more than the header says",
    ),
    pytest.param(
        lambda: document([], without_its_size(128 * MEGABYTE), body_bytes=10, compressed=True),
        id="unpacks to more than its frame says",
    ),
    pytest.param(
        lambda: document(
            [["a", "bytes", [MEGABYTE], 0]],
            packed(MEGABYTE) + packed(128 * MEGABYTE),
            body_bytes=MEGABYTE,
            compressed=True,
        ),
        id="a second frame behind the first",
    ),
    pytest.param(
        lambda: document([], with_a_wide_window(15 * MEGABYTE), body_bytes=15 * MEGABYTE, compressed=True),
        id="a wide window",
    ),
    pytest.param(
        lambda: document(
            [[f"a{at}", "bytes", [MEGABYTE], 0] for at in range(80)],
            packed(MEGABYTE),
            body_bytes=MEGABYTE,
            compressed=True,
        ),
        id="the same megabyte 80 times",
    ),
    pytest.param(
        lambda: document(
            [[f"a{at}", "bytes", [2 * MEGABYTE], at * MEGABYTE] for at in range(15)], bytes(16 * MEGABYTE)
        ),
        id="entries that overlap by half",
    ),
    pytest.param(lambda: document([["a", "bytes", [1], 0]], bytes(2)), id="bytes that no entry accounts for"),
    pytest.param(
        lambda: document([["a", "bytes", [1], 0], ["b", "bytes", [1], 2]], bytes(3)),
        id="a gap between entries",
    ),
    pytest.param(
        lambda: document([["a", "bytes", [1], 0], ["a", "bytes", [1], 1]], bytes(2)), id="one name twice"
    ),
    pytest.param(
        lambda: document([["a", "bytes", [1], 0]], bytes(1), values={"a": 1}), id="a name that a value has"
    ),
    pytest.param(
        lambda: document([[str(at), "|u1", [0], 0] for at in range(5000)], b""),
        id="more entries than a document has",
    ),
    pytest.param(
        lambda: document([["a", "<f8", [0, 2**30, 2**30], 0]], b""), id="no elements, but sides without end"
    ),
    pytest.param(lambda: in_header(many(b"\x80", SPACE)), id="empty tables"),
    pytest.param(lambda: in_header(many(b"\x81\xa0\xc0", SPACE // 3)), id="tables of one value"),
    pytest.param(lambda: in_header(many(b"\x90", SPACE)), id="empty lists"),
    pytest.param(lambda: in_header(many(b"\xa2ab", SPACE // 3)), id="short texts"),
    pytest.param(lambda: in_header(many(b"\xcd\xff\xff", SPACE // 3)), id="numbers"),
    pytest.param(lambda: in_header(many(b"\xc0", SPACE)), id="nothings"),
    pytest.param(lambda: in_header(b"\x81\xa1a" + b"\x91" * 100_000 + b"\xc0"), id="lists in lists"),
    pytest.param(
        lambda: in_header(
            b"\x81\xa1a" + (b"\xdd" + struct.pack(">I", SPACE // 2)) * 1000 + b"\xc0" * (SPACE // 2)
        ),
        id="lists that claim what is not there",
    ),
    pytest.param(
        lambda: in_header(b"\x81\xa1a\xdf\xff\xff\xff\xff" + b"\xc0" * 1000),
        id="tables that claim what is not there",
    ),
    pytest.param(lambda: in_header(b"\x81\xa1a\xd4\x05\x00"), id="a kind of value of someone's own"),
    pytest.param(lambda: in_header(b"\x81\xa1a\xdb\xff\xff\xff\xff"), id="a header that is cut off"),
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_for_less_memory_than_its_limit_twice(bomb: Callable[[], bytes]) -> None:
    data = bomb()
    with memory_peak() as peak:
        began_s = time.thread_time()
        with pytest.raises(CodecError):
            decode(data, body_limit_bytes=BODY_LIMIT_BYTES)
        took_s = time.thread_time() - began_s
    assert peak.grown_bytes <= 2 * BODY_LIMIT_BYTES + SLACK_BYTES
    assert took_s <= 2


@pytest.mark.parametrize(
    "largest",
    [
        lambda: document([["a", "bytes", [BODY_LIMIT_BYTES], 0]], bytes(BODY_LIMIT_BYTES)),
        lambda: document(
            [["a", "bytes", [BODY_LIMIT_BYTES], 0]],
            packed(BODY_LIMIT_BYTES),
            body_bytes=BODY_LIMIT_BYTES,
            compressed=True,
        ),
        lambda: document([["a", "list of bytes", [3] * 60_000, 0]], bytes(180_000)),
        lambda: document([[str(at), "<f4", [1], 4 * at] for at in range(4000)], bytes(16_000)),
        lambda: in_header(many(b"\xa2ab", 130_000)),
        lambda: in_header(many(b"\x81\xa0\xc0", 43_000)),
        lambda: in_header(b"\x81\xa1a" + msgpack.packb("a" * (SPACE - 10) + "\U0001f600")),
    ],
    ids=["bytes", "packed bytes", "pieces", "arrays", "short texts", "tables", "a long text"],
)
def test_the_largest_that_is_allowed_takes_no_more_than_its_limit_twice(largest: Callable[[], bytes]) -> None:
    data = largest()
    with memory_peak() as peak:
        read = decode(data, body_limit_bytes=BODY_LIMIT_BYTES)
    assert peak.grown_bytes <= 2 * BODY_LIMIT_BYTES + SLACK_BYTES
    assert read


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["bytes", "list of bytes", "|u1", "<f4", "<f8", "object"]),
        st.lists(st.integers(-1, 4) | st.just(2**30), max_size=4),
        st.integers(-1, 40),
    ),
    max_size=4,
)


@given(ENTRIES, st.binary(max_size=40), st.booleans())
@settings(max_examples=150)
def test_what_is_read_is_never_larger_than_the_body(
    entries: list[tuple[str, list[int], int]], body: bytes, compressed: bool
) -> None:
    arrays = [[str(at), *entry] for at, entry in enumerate(entries)]
    sent = zstandard.ZstdCompressor().compress(body) if compressed else body
    try:
        read = decode(document(arrays, sent, body_bytes=len(body), compressed=compressed))
    except CodecError:
        return
    assert sum(_byte_count(value) for value in read.values()) == len(body)


def _byte_count(value: Any) -> int:
    return (
        value.nbytes
        if isinstance(value, np.ndarray)
        else len(value if isinstance(value, bytes) else b"".join(value))
    )


@pytest.mark.parametrize(
    "unreadable",
    [
        {"a": [0] * 200_000},
        {"a": "a" * HEADER_LIMIT_BYTES},
        {f"a{at}": np.zeros(1) for at in range(5000)},
        {"a": [bytes(1)] * 70_000},
    ],
    ids=["values", "a text", "arrays", "pieces"],
)
def test_what_could_not_be_read_again_is_not_written(unreadable: dict[str, Any]) -> None:
    """A checkpoint that no one can read must be known before its run goes on."""
    with pytest.raises(CodecError):
        encode(unreadable)


def test_as_many_arrays_as_are_allowed_travel() -> None:
    most = {f"a{at}": np.zeros(1, dtype=np.uint8) for at in range(ENTRIES_LIMIT)}
    assert list(decode(encode(most))) == list(most)


def test_an_array_of_more_than_eight_sides_is_refused() -> None:
    assert decode(document([["a", "|u1", [1] * 8, 0]], b"1"))["a"].shape == (1,) * 8
    with pytest.raises(CodecError, match="described wrongly"):
        decode(document([["a", "|u1", [1] * 9, 0]], b"1"))


def test_a_header_above_the_limit_is_refused_even_if_it_is_all_there() -> None:
    claimed = HEADER_LIMIT_BYTES + 1
    whole = struct.pack("<5sBI", b"STRL1", 0, claimed) + b"\xc0" * claimed
    with pytest.raises(CodecError, match=f"header claims {claimed} bytes"):
        decode(whole)
