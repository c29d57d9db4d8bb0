"""What a data set is: its columns, classes and counts, and its shards by hash. A spec names a manifest by its own hash.

Training rows and held-out rows lie in separate shards. Rows are numbered over all training shards in order, and over
all held-out shards; a call names its rows as ranges within shards.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from training.base_model import FrozenModel
from training.data.shard import CLASSES_LIMIT, WIDTH_LIMIT, hash_of

MANIFEST_LIMIT_BYTES = 16 * 2**20
_HASH = r"^[0-9a-f]{64}$"


class Column(FrozenModel):
    """A column that features are made of.

    `number`: features hold (value - mean) · scale; sparse ones at the column's own place. An indicator: the same
    of 1 in rows with the one category in `frequent`, of 0 in others. The rest are only in sparse features, by
    `training.data.hashing`: a `text` takes a place, as does a `category`, a number that names something (3.0 is 3); a
    `count` takes the place of its bucket, and of `words` each word and each pair of words takes one.
    Pixels of pictures are no columns. `missing` counts empty cells: an empty number counts as the mean, others take no
    place. `frequent` are texts that come often, to name coefficients by.
    """

    name: str = Field(max_length=200)
    type: Literal["number", "text indicator", "number indicator", "text", "category", "count", "words"] = (
        "number"
    )
    mean: float = 0.0
    scale: float = 1.0
    missing: int = 0
    frequent: tuple[str, ...] = Field((), max_length=100)

    @property
    def category(self) -> str:
        """Return an indicator's category; empty for other columns."""
        return self.frequent[0] if self.type.endswith("indicator") else ""


class ShardRef(FrozenModel):
    """A shard by its hash, how many rows it has, and how many bytes."""

    hash: str = Field(pattern=_HASH)
    rows: int = Field(ge=1)
    byte_count: int = Field(ge=1)


class RowRange(FrozenModel):
    """The rows of a shard from `begin` up to `end`."""

    shard: str = Field(pattern=_HASH)
    begin: int = Field(ge=0)
    end: int = Field(ge=1)

    @model_validator(mode="after")
    def _is_not_empty(self) -> RowRange:
        if self.begin >= self.end:
            raise ValueError("a range has at least one row")
        return self

    @property
    def rows(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class DataShape:
    """What a model must know of a data set. `nonzeros` is the mean number of stored features a row; `picture` is
    (rows, columns) of a grey picture, None for other features.
    """

    kind: Literal["dense", "sparse"]
    width: int
    classes: int
    nonzeros: float
    picture: tuple[int, int] | None = None


class Manifest(FrozenModel):
    """A data set. `class_counts` and `held_out_class_counts` follow the order of `classes`. `of_bytes`: dense features
    are bytes that stand for 0 to 1.
    """

    format: Literal[1] = 1
    name: str = Field(max_length=200)
    source: str = Field("", max_length=1000)
    kind: Literal["dense", "sparse"]
    width: int = Field(ge=1, le=WIDTH_LIMIT)
    picture: tuple[int, int] | None = None
    of_bytes: bool = False
    nonzeros: float = Field(ge=0)
    columns: tuple[Column, ...] = Field((), max_length=20_000)
    target: str = Field(max_length=200)
    classes: tuple[str, ...] = Field(min_length=2, max_length=CLASSES_LIMIT)
    class_counts: tuple[int, ...]
    held_out_class_counts: tuple[int, ...]
    held_out_share: float = Field(gt=0, lt=1)
    seed: int = Field(0, ge=0)
    shards: tuple[ShardRef, ...] = Field(min_length=1)
    held_out_shards: tuple[ShardRef, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _counts_agree(self) -> Manifest:
        for counts, shards in (
            (self.class_counts, self.shards),
            (self.held_out_class_counts, self.held_out_shards),
        ):
            if len(counts) != len(self.classes) or sum(counts) != sum(shard.rows for shard in shards):
                raise ValueError("the counts of classes are not those of the rows")
        if self.picture is not None and self.picture[0] * self.picture[1] != self.width:
            raise ValueError("the picture's rows and columns are not its features")
        return self

    @property
    def rows(self) -> int:
        """How many rows there are to learn from."""
        return sum(shard.rows for shard in self.shards)

    @property
    def held_out_rows(self) -> int:
        return sum(shard.rows for shard in self.held_out_shards)

    @property
    def byte_count(self) -> int:
        """The bytes of all shards to learn from: what one epoch fetches."""
        return sum(shard.byte_count for shard in self.shards)

    @property
    def shape(self) -> DataShape:
        return DataShape(self.kind, self.width, len(self.classes), self.nonzeros, self.picture)

    @property
    def hash(self) -> str:
        return hash_of(self.encode())

    def encode(self) -> bytes:
        """Return the manifest as canonical JSON. Its hash is the data set's name in a spec."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Manifest:
        """Return the manifest in `data`. Raises ValueError."""
        if len(data) > MANIFEST_LIMIT_BYTES:
            raise ValueError(
                f"a manifest of {len(data):,} bytes; at most {MANIFEST_LIMIT_BYTES:,} are allowed"
            )
        try:
            return Manifest.model_validate_json(data)
        except ValidationError as error:
            raise ValueError(f"the manifest cannot be read: {error.errors()[0]['msg']}") from None

    def ranges(self, begin: int, end: int, *, held_out: bool = False) -> tuple[RowRange, ...]:
        """Return where the training rows (or held-out rows) from `begin` up to `end` lie. Raises ValueError."""
        rows = self.held_out_rows if held_out else self.rows
        if not 0 <= begin < end <= rows:
            raise ValueError(f"rows {begin} to {end} of {rows}")
        ranges, first = [], 0
        for shard in self.held_out_shards if held_out else self.shards:
            low, high = max(begin - first, 0), min(end - first, shard.rows)
            if low < high:
                ranges.append(RowRange(shard=shard.hash, begin=low, end=high))
            first += shard.rows
        return tuple(ranges)
