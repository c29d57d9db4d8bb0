"""The hashing trick: each text of a column is one of 2^bits places of sparse features.

A text and its column are hashed together, so nothing has to be learned or stored to turn new rows into features. Two
texts may share a place; with many more places than texts that is rare.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

import numpy as np
import numpy.typing as npt

from training.data.rows import SparseFeatures

REMEMBERED_LIMIT = 200_000
"""How many texts of a column are remembered."""
WORDS_LIMIT = 400
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def place_of(column: str, text: str, bits: int) -> int:
    """Return the place of this text in this column, from 0 up to 2^bits. A number's place has the empty text."""
    digest = hashlib.blake2b(f"{column}={text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") & ((1 << bits) - 1)


def bucket(count: int) -> str:
    """Return the bucket of a count as a text: small ones alone, larger ones by the square of their logarithm."""
    return str(count) if count <= 2 else f"log² {int(math.log(count) ** 2)}"


def words_and_pairs(text: str) -> list[str]:
    """Return the first 400 words of a text in small letters, and each two that follow one another."""
    words = [match.group() for match in islice(_WORD.finditer(text.lower()), WORDS_LIMIT)]
    return [*words, *(f"{first} {second}" for first, second in pairwise(words))]


class _Places(dict[str, int]):
    """The places of a column's texts, found when they are first needed. The empty text has none: -1."""

    def __init__(self, column: str, bits: int) -> None:
        super().__init__({"": -1})
        self._column, self._bits = column, bits

    def __missing__(self, text: str) -> int:
        place = self[text] = place_of(self._column, text, self._bits)
        return place


class Hasher:
    """Turns columns into sparse features. It remembers places, as most texts come often."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self._places: dict[str, _Places] = {}

    @property
    def width(self) -> int:
        return 1 << self.bits

    def _places_of(self, column: str) -> _Places:
        """Return the places of a column; forgotten ones are found again."""
        places = self._places.get(column)
        if places is None or len(places) > REMEMBERED_LIMIT:
            places = self._places[column] = _Places(column, self.bits)
        return places

    def features(
        self,
        texts: Mapping[str, Sequence[str]],
        numbers: Mapping[str, npt.NDArray[np.float64]] | None = None,
    ) -> SparseFeatures:
        """Return one row for each text of the columns, which are equally long. Numbers come standardised.

        An empty text and a number that is NaN take no place.
        """
        places: list[npt.NDArray[np.int64]] = []
        values: list[npt.NDArray[np.float64]] = []
        for column, cells in texts.items():
            known = self._places_of(column)
            places.append(np.array([known[cell] for cell in cells], dtype=np.int64))
            values.append(np.ones(len(cells)))
        for column, standardised in (numbers or {}).items():
            places.append(np.where(np.isnan(standardised), -1, place_of(column, "", self.bits)))
            values.append(standardised)
        all_places, all_values = np.stack(places, axis=1), np.stack(values, axis=1)
        there = all_places >= 0
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return SparseFeatures(
            offsets, all_places[there].astype(np.int32), all_values[there].astype(np.float32), self.width
        )

    def bags(self, column: str, bags: Sequence[Sequence[str]]) -> SparseFeatures:
        """Return one row for each bag of texts, such as `words_and_pairs`. A row's values share the length 1, so that
        long texts do not outweigh short ones.
        """
        known = self._places_of(column)
        sets = [sorted({known[text] for text in bag}) for bag in bags]
        lengths = np.array([len(row) for row in sets], dtype=np.int64)
        values = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.fromiter((place for row in sets for place in row), np.int32, int(lengths.sum()))
        return SparseFeatures(offsets, places, values.astype(np.float32), self.width)
