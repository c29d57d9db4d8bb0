"""A shard gives back its rows; damaged and hostile bytes are refused before they cost memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory import memory_peak
from training.data.rows import DenseFeatures, Rows, SparseFeatures, joined
from training.data.shard import SHARD_LIMIT_BYTES, BadShard, check_hash, encode_shard, hash_of, rows_of
from training.engine.codec import decode, encode

MEGABYTE = 2**20


def dense(rng: np.random.Generator, rows: int, width: int, *, pictures: bool = False) -> DenseFeatures:
    if pictures:
        return DenseFeatures(rng.integers(0, 256, (rows, width)).astype(np.uint8))
    return DenseFeatures(rng.standard_normal((rows, width)).astype(np.float32))


def sparse(rng: np.random.Generator, rows: int, width: int) -> SparseFeatures:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 6, rows))]).astype(np.int64)
    count = int(offsets[-1])
    places = rng.integers(0, width, count).astype(np.int32)
    return SparseFeatures(offsets, places, rng.standard_normal(count).astype(np.float32), width)


@st.composite
def rows_to_store(draw) -> Rows:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, width = draw(st.integers(1, 40)), draw(st.integers(1, 30))
    kind = draw(st.sampled_from(["dense", "pictures", "sparse"]))
    features = (
        sparse(rng, rows, width) if kind == "sparse" else dense(rng, rows, width, pictures=kind == "pictures")
    )
    return Rows(features, rng.integers(0, 3, rows).astype(np.int32))


def assert_equal_rows(found: Rows, expected: Rows) -> None:
    np.testing.assert_array_equal(found.targets, expected.targets)
    assert type(found.features) is type(expected.features)
    if isinstance(expected.features, DenseFeatures):
        assert found.features.values.dtype == expected.features.values.dtype
        np.testing.assert_array_equal(found.features.values, expected.features.values)
    else:
        for name in ("offsets", "places", "values", "width"):
            np.testing.assert_array_equal(getattr(found.features, name), getattr(expected.features, name))


@given(rows_to_store(), st.data())
def test_a_shard_gives_back_its_rows_and_any_range_of_them(rows, data):
    shard = encode_shard(rows, 3)
    assert_equal_rows(rows_of(shard), rows)
    assert encode_shard(rows_of(shard), 3) == shard, "equal rows are equal bytes"
    begin = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(begin, len(rows)))
    picked = np.arange(begin, end)
    assert_equal_rows(rows_of(shard, begin, end), rows.take(picked))
    assert_equal_rows(joined([rows.between(0, begin), rows.between(begin, len(rows))]), rows)


@given(rows_to_store(), st.data())
def test_a_damaged_shard_is_refused_or_its_hash_tells(rows, data):
    shard = encode_shard(rows, 3)
    damaged = bytearray(shard)
    place = data.draw(st.integers(0, len(shard) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadShard, match="changed"):
        check_hash(bytes(damaged), hash_of(shard))
    try:
        found = rows_of(bytes(damaged))
    except BadShard:
        return
    assert found.targets.min() >= 0
    if isinstance(found.features, SparseFeatures):
        assert found.features.places.max(initial=0) < found.features.width


def documents() -> dict[str, dict]:
    rng = np.random.default_rng(0)
    good = decode(encode_shard(Rows(dense(rng, 4, 3), np.array([0, 1, 1, 0], np.int32)), 2))
    few = decode(encode_shard(Rows(sparse(rng, 4, 9), np.array([0, 1, 1, 0], np.int32)), 2))
    last = len(few["places"])
    return {
        "no classes": {**good, "classes": 1},
        "a class too large": {**good, "targets": np.array([0, 1, 2, 0], np.int32)},
        "a class below zero": {**good, "targets": np.array([0, 1, -1, 0], np.int32)},
        "classes as real numbers": {**good, "targets": np.zeros(4, np.float32)},
        "no rows": {**good, "targets": np.zeros(0, np.int32), "features": np.zeros((0, 3), np.float32)},
        "more features than classes": {**good, "features": np.zeros((5, 3), np.float32)},
        "features in three dimensions": {**good, "features": np.zeros((4, 3, 1), np.float32)},
        "features as integers": {**good, "features": np.zeros((4, 3), np.int32)},
        "not a number": {**good, "features": np.full((4, 3), np.nan, np.float32)},
        "another key": {**good, "more": 1},
        "another kind": {**good, "kind": "text"},
        "a width of text": {**few, "width": "9"},
        "a place beyond the width": {**few, "width": 1, "places": np.full(last, 1, np.int32)},
        "a place below zero": {**few, "places": np.full(last, -1, np.int32)},
        "offsets that fall": {**few, "offsets": np.array([0, last, 0, 0, last], np.int64)},
        "offsets beyond the end": {**few, "offsets": np.array([0, 0, 0, 0, last + 1], np.int64)},
        "offsets for fewer rows": {**few, "offsets": np.array([0, last], np.int64)},
        "an infinite value": {**few, "values": np.full(last, np.inf, np.float32)},
    }


@pytest.mark.parametrize("fault", documents())
def test_a_shard_that_cannot_be_computed_with_is_refused(fault):
    with pytest.raises(BadShard):
        rows_of(encode(documents()[fault]))


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_junk_is_no_shard(junk):
    with pytest.raises(BadShard):
        rows_of(junk)


def test_a_shard_that_would_be_large_is_refused_before_it_takes_memory():
    body = {"kind": "dense", "classes": 2, "targets": np.zeros(1, np.int32)}
    bomb = encode({**body, "features": np.zeros((1, 200 * MEGABYTE), np.uint8)}, compress=True)
    assert len(bomb) < MEGABYTE
    with memory_peak() as peak, pytest.raises(BadShard, match="at most"):
        rows_of(bomb)
    assert peak.grown_bytes < 32 * MEGABYTE
    rows = Rows(DenseFeatures(np.zeros((2, SHARD_LIMIT_BYTES // 2), np.uint8)), np.zeros(2, np.int32))
    with pytest.raises(BadShard, match="at most"):
        encode_shard(rows, 2)


def test_ranges_outside_a_shard_are_refused():
    shard = encode_shard(Rows(DenseFeatures(np.zeros((3, 1), np.float32)), np.zeros(3, np.int32)), 2)
    for begin, end in ((-1, 2), (2, 1), (0, 4)):
        with pytest.raises(BadShard, match="with 3 rows"):
            rows_of(shard, begin, end)
