"""Arrays to bytes and back; and what comes from hostile machines is refused before it costs memory."""

import struct

import msgpack
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from training.engine.codec import BODY_LIMIT_BYTES, CodecError, decode, encode

DTYPES = st.sampled_from(["b1", "u1", "i4", "i8", "f4", "f8"])
ARRAYS = DTYPES.flatmap(
    lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), ARRAYS | VALUES, max_size=6), st.booleans())
def test_what_goes_in_comes_out(document, compress):
    found = decode(encode(document, compress=compress))
    assert set(found) == set(document)
    for name, value in document.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)
        else:
            assert found[name] == value


@given(st.binary(max_size=300))
def test_junk_is_refused_and_never_anything_else(junk):
    with pytest.raises(CodecError):
        decode(junk)


@given(st.data())
def test_a_damaged_document_is_refused_or_read_but_never_breaks(data):
    raw = bytearray(encode({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": "text"}))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(raw))
    except CodecError:
        pass


def test_compression_is_used_only_where_it_pays():
    zeros, noise = (
        np.zeros(100_000, np.uint8),
        np.random.default_rng(0).integers(0, 256, 100_000).astype(np.uint8),
    )
    assert len(encode({"a": zeros}, compress=True)) < 1000
    assert len(encode({"a": noise}, compress=True)) <= len(encode({"a": noise}))


def test_a_compressed_bomb_is_refused_before_it_unpacks():
    body = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    header = msgpack.packb({"values": {}, "arrays": [], "body_bytes": 10})
    raw = struct.pack("<5sBI", b"STRL1", 1, len(header)) + header + body
    with pytest.raises(CodecError):
        decode(raw)
    header = msgpack.packb({"values": {}, "arrays": [], "body_bytes": BODY_LIMIT_BYTES + 1})
    with pytest.raises(CodecError, match="at most"):
        decode(struct.pack("<5sBI", b"STRL1", 1, len(header)) + header + body)


def test_large_bytes_and_lists_of_them_lie_in_the_body():
    """As a learner's state of megabytes does inside an update's payload, or the states of a thousand slots."""
    document = {
        "state": bytes(20_000_000),
        "slots": [bytes([i % 256]) * 3000 for i in range(5000)],
        "none": [],
    }
    assert decode(encode(document)) == document


def test_objects_cannot_travel():
    with pytest.raises(CodecError, match="plain number"):
        encode({"a": np.array([object()])})


def test_an_array_may_not_reach_past_the_end():
    header = msgpack.packb({"values": {}, "arrays": [["a", "<f8", [1000], 0]], "body_bytes": 8})
    with pytest.raises(CodecError, match="past the end"):
        decode(struct.pack("<5sBI", b"STRL1", 0, len(header)) + header + bytes(8))
