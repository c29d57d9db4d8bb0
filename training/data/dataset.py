"""A table becomes a data set: rows are held out, shuffled, divided into shards and stored with their manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from training.data.manifest import MANIFEST_LIMIT_BYTES, Column, Manifest, ShardRef
from training.data.rows import DenseFeatures, Features, Rows
from training.data.shard import SHARD_BYTES, SHARDS, encode_shard
from training.data.split import held_out_rows, shuffled
from training.data.store import WritableDataStore

SCORES_LIMIT = 50_000_000
"""Probabilities of the held-out rows, one a class: what judges a model holds all of them at once."""


MOST_NAME_LETTERS = 200
"""Of a column, and of a class."""


class BadTable(ValueError):
    """No data set can be made of this table. The message is for people."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as they were read, not yet standardised. Arrays may be memory-mapped files.

    `columns` says what features are made of; `standardise` asks for the mean and the scale of each dense column, from
    the rows that are learned from.
    """

    name: str
    source: str
    features: Features
    targets: npt.NDArray[np.int32]
    target: str
    classes: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    picture: tuple[int, int] | None = None
    standardise: bool = False


def write_dataset(
    table: Table, store: WritableDataStore, *, held_out_share: float = 0.2, seed: int = 0
) -> Manifest:
    """Store the table's shards and its manifest, and return the manifest. Raises BadTable.

    Only one shard is in memory beside the table.
    """
    counts = np.bincount(table.targets, minlength=len(table.classes))
    held_out = held_out_rows(table.targets, held_out_share, seed)
    _check(table, counts, int(held_out.sum()))
    order = shuffled(len(table.targets), seed)
    learned, judged = order[~held_out[order]], order[held_out[order]]
    table = _standardised(table, np.sort(learned))
    held_out_counts = np.bincount(table.targets[judged], minlength=len(table.classes))
    features = table.features
    manifest = Manifest(
        name=table.name,
        source=table.source,
        kind="dense" if isinstance(features, DenseFeatures) else "sparse",
        width=features.width,
        picture=table.picture,
        of_bytes=isinstance(features, DenseFeatures) and features.values.dtype == np.uint8,
        nonzeros=features.nonzeros / len(table.targets),
        columns=table.columns,
        target=table.target,
        classes=table.classes,
        class_counts=tuple(map(int, counts - held_out_counts)),
        held_out_class_counts=tuple(map(int, held_out_counts)),
        held_out_share=held_out_share,
        seed=seed,
        shards=tuple(_stored(table, learned, store)),
        held_out_shards=tuple(_stored(table, judged, store)),
    )
    encoded = manifest.encode()
    if len(encoded) > MANIFEST_LIMIT_BYTES:
        raise BadTable(
            f"The names of its columns, classes and texts have {len(encoded) // 10**6} MB together; at most"
            f" {MANIFEST_LIMIT_BYTES // 10**6} are allowed: give shorter names, or leave out columns."
        )
    store.put(encoded)
    return manifest


def _check(table: Table, counts: npt.NDArray[np.intp], held_out: int) -> None:
    if len(table.targets) < 2:
        raise BadTable("A data set needs at least 2 rows.")
    if too_long := [name for name in table.classes if len(name) > MOST_NAME_LETTERS]:
        raise BadTable(
            f"A class has a name of {len(too_long[0]):,} letters; at most {MOST_NAME_LETTERS} are allowed: it would"
            " be on every page of the data set."
        )
    present = int((counts > 0).sum())
    if present < 2:
        raise BadTable(
            f"Every row has the same value in {table.target!r}: choose a target with two or more classes."
        )
    if int(counts.max()) < 2:
        raise BadTable("Every class has one row only, so nothing can be held out: choose another target.")
    if held_out * len(table.classes) > SCORES_LIMIT:
        raise BadTable(
            f"Judging {held_out:,} held-out rows by {len(table.classes):,} classes takes too much memory: hold out a"
            f" smaller share, at most {SCORES_LIMIT // len(table.classes):,} rows, or choose a target with fewer"
            " classes."
        )


def _standardised(table: Table, learned: npt.NDArray[np.intp]) -> Table:
    """Return the table with the mean and scale of its columns, by the rows with these numbers."""
    features = table.features
    if not table.standardise or not isinstance(features, DenseFeatures):
        return table
    means, deviations = _moments(features, learned)
    columns = tuple(
        column.model_copy(
            update={"mean": float(mean), "scale": 1.0 / float(deviation) if deviation > 0 else 1.0}
        )
        for column, mean, deviation in zip(table.columns, means, deviations, strict=True)
    )
    return replace(table, columns=columns)


def _moments(
    features: DenseFeatures, learned: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean and standard deviation of each column. NaN, a missing number, counts for neither."""
    count, mean, squares = (np.zeros(features.width) for _ in range(3))
    for part in _parts(learned, SHARD_BYTES[1] // (8 * features.width)):
        values = features.take(part).numbers(np.float64)
        known = ~np.isnan(values)
        here = known.sum(axis=0)
        total = count + here
        part_mean = np.divide(np.where(known, values, 0.0).sum(axis=0), here, where=here > 0, out=mean.copy())
        away = np.where(known, values - part_mean, 0.0)
        squares += (away * away).sum(axis=0)
        shift = part_mean - mean
        share = np.divide(here, total, where=total > 0, out=np.zeros_like(mean))
        squares += shift * shift * count * share
        mean += shift * share
        count = total
    return mean, np.sqrt(np.divide(squares, count, where=count > 0, out=np.zeros_like(mean)))


def _parts(order: npt.NDArray[np.intp], rows: int) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the numbers in groups of so many rows, at least one."""
    for begin in range(0, len(order), max(1, rows)):
        yield order[begin : begin + max(1, rows)]


def _stored(table: Table, order: npt.NDArray[np.intp], store: WritableDataStore) -> Iterator[ShardRef]:
    """Store the rows with these numbers as shards, in this order."""
    features = table.features
    if isinstance(features, DenseFeatures):
        # What waits for being standardised may be wider than what is stored.
        row_bytes = min(features.values.itemsize, 4) * features.width + 4
    else:
        row_bytes = 12 + 8 * -(-features.nonzeros // max(1, len(features)))
    mean = np.array([column.mean for column in table.columns])
    scale = np.array([column.scale for column in table.columns])
    shard_bytes = min(max(row_bytes * len(order) // SHARDS, SHARD_BYTES[0]), SHARD_BYTES[1])
    for part in _parts(order, shard_bytes // row_bytes):
        chosen = features.take(part)
        if table.standardise and isinstance(chosen, DenseFeatures):
            standard = (chosen.numbers(np.float64) - mean) * scale
            chosen = DenseFeatures(np.where(np.isnan(standard), 0.0, standard).astype(np.float32))
        shard = encode_shard(Rows(chosen, table.targets[part]), len(table.classes))
        yield ShardRef(hash=store.put(shard), rows=len(part), byte_count=len(shard))
