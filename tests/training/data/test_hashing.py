"""Texts take the same places in every process, and in any order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.data import hashing
from training.data.hashing import Hasher, bucket, place_of, words_and_pairs

CELLS = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1, max_size=30)


@given(CELLS, st.integers(1, 24))
def test_a_row_has_the_places_of_its_texts(cells, bits):
    first, second = zip(*cells, strict=True)
    numbers = np.array([np.nan if i % 3 == 0 else i / 2 for i in range(len(cells))])
    features = Hasher(bits).features({"a": first, "b": second}, {"n": numbers})
    assert features.width == 2**bits
    for i, texts in enumerate(cells):
        row = features.between(i, i + 1)
        expected = [
            (place_of(column, text, bits), 1.0) for column, text in zip("ab", texts, strict=True) if text
        ]
        if not np.isnan(numbers[i]):
            expected.append((place_of("n", "", bits), np.float32(numbers[i])))
        assert list(zip(row.places, row.values, strict=True)) == expected


def test_a_hasher_that_forgets_finds_the_same_places(monkeypatch):
    cells = [str(i) for i in range(50)]
    monkeypatch.setattr(hashing, "REMEMBERED_LIMIT", 3)
    hasher = Hasher(12)
    first = hasher.features({"a": cells}).places
    np.testing.assert_array_equal(hasher.features({"a": cells}).places, first)


def test_places_are_spread_evenly_and_columns_apart():
    places = np.array([place_of("a", str(i), 10) for i in range(50_000)])
    counts = np.bincount(places, minlength=1024)
    # 48.8 a place are expected with a deviation of 7.
    assert counts.min() > 20
    assert counts.max() < 85
    assert place_of("a", "x", 20) != place_of("b", "x", 20)


def test_a_place_never_changes():
    """Stored data sets and downloaded scripts depend on it."""
    assert place_of("carrier", "UA", 14) == 3108
    assert place_of("distance", "", 14) == 9116


def test_bags_have_length_one_and_each_word_once():
    bags = Hasher(16).bags("text", [["a", "b", "a"], [], ["c"]])
    assert list(np.diff(bags.offsets)) == [2, 0, 1]
    np.testing.assert_allclose(bags.values, [0.5**0.5, 0.5**0.5, 1.0])
    assert set(bags.places[:2]) == {place_of("text", word, 16) for word in "ab"}


def test_words_and_buckets_by_hand():
    assert words_and_pairs("It's GOOD, ünder_it!") == [
        *("it's", "good", "ünder", "it"),
        *("it's good", "good ünder", "ünder it"),
    ]
    assert words_and_pairs("") == []
    assert len(words_and_pairs("word " * 5000)) == 799
    assert [bucket(count) for count in (-1, 0, 2, 3, 100)] == ["-1", "0", "2", "log² 1", "log² 21"]
