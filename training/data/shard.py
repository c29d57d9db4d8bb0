"""A shard: some rows of a data set as canonical bytes (`training.engine.codec`), named by their SHA-256.

Equal rows give equal bytes. Reading checks everything that a computation relies on, because a shard may come from a
store that others can write to.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from training.data.rows import DenseFeatures, Features, Rows, SparseFeatures
from training.engine.codec import CodecError, Document, decode, encode

SHARD_BYTES = (16 * 2**10, 512 * 2**10)
"""About how small and how large a shard is."""
SHARDS = 256
"""How many shards a data set has where their sizes allow it: a function that has a slice fetches little beside it."""
SHARD_LIMIT_BYTES = 16 * 2**20
WIDTH_LIMIT = 2**24
CLASSES_LIMIT = 1000

_DENSE_KEYS = {"kind", "classes", "targets", "features"}
_SPARSE_KEYS = {"kind", "classes", "targets", "width", "offsets", "places", "values"}


class BadShard(ValueError):
    """The bytes are no shard, or not the one that was named."""


def hash_of(data: bytes) -> str:
    """Return the name of these bytes: their SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def check_hash(data: bytes, name: str) -> bytes:
    """Return `data`. Raises BadShard if they are not the bytes of that name."""
    if hash_of(data) != name:
        raise BadShard(f"shard {name[:12]} was changed: its bytes have another hash")
    return data


def encode_shard(rows: Rows, classes: int) -> bytes:
    """Return the rows as a shard. Raises BadShard for rows that `rows_of` would reject."""
    document: Document = {"kind": "dense", "classes": classes, "targets": rows.targets.astype(np.int32)}
    features = rows.features
    if isinstance(features, DenseFeatures):
        exact = features.values.dtype == np.uint8
        document["features"] = features.values if exact else features.values.astype(np.float32)
    else:
        document |= {
            "kind": "sparse",
            "width": features.width,
            "offsets": features.offsets.astype(np.int64),
            "places": features.places.astype(np.int32),
            "values": features.values.astype(np.float32),
        }
    _rows_in(document)
    data = encode(document)
    if len(data) > SHARD_LIMIT_BYTES:
        raise BadShard(f"a shard of {len(data):,} bytes; at most {SHARD_LIMIT_BYTES:,} are allowed")
    return data


def rows_of(shard: bytes, begin: int = 0, end: int | None = None) -> Rows:
    """Return the rows from `begin` up to `end` (all that follow) as views of `shard`. Raises BadShard."""
    try:
        document = decode(shard, body_limit_bytes=SHARD_LIMIT_BYTES)
    except CodecError as error:
        raise BadShard(f"the shard cannot be read: {error}") from None
    rows = _rows_in(document)
    end = len(rows) if end is None else end
    if not 0 <= begin <= end <= len(rows):
        raise BadShard(f"rows {begin} to {end} of a shard with {len(rows)} rows")
    return rows.between(begin, end)


def _rows_in(document: Document) -> Rows:
    """Return all rows of a shard's document. Raises BadShard unless it can be computed with."""
    targets: Any = document.get("targets")
    classes = document.get("classes")
    if type(classes) is not int or not 2 <= classes <= CLASSES_LIMIT:
        raise BadShard(f"a shard has 2 to {CLASSES_LIMIT} classes")
    if not _is_array(targets, 1, "i4") or not len(targets):
        raise BadShard("a shard has at least one row, and an int32 class for each")
    if targets.min() < 0 or targets.max() >= classes:
        raise BadShard(f"a class of the shard is not one of {classes}")
    kind = document.get("kind")
    if kind == "dense" and set(document) == _DENSE_KEYS:
        features: Features = _dense_features(document, len(targets))
    elif kind == "sparse" and set(document) == _SPARSE_KEYS:
        features = _sparse_features(document, len(targets))
    else:
        raise BadShard("the shard is neither dense nor sparse")
    return Rows(features, targets)


def _dense_features(document: Document, rows: int) -> DenseFeatures:
    values = document["features"]
    if not (_is_array(values, 2, "f4") or _is_array(values, 2, "u1")) or len(values) != rows:
        raise BadShard("dense features are float32 or uint8, a row for each class")
    if not 1 <= values.shape[1] <= WIDTH_LIMIT:
        raise BadShard(f"a row has 1 to {WIDTH_LIMIT:,} features")
    _check_finite(values)
    return DenseFeatures(values)


def _sparse_features(document: Document, rows: int) -> SparseFeatures:
    offsets, places, values = (document[name] for name in ("offsets", "places", "values"))
    width = document["width"]
    if type(width) is not int or not 1 <= width <= WIDTH_LIMIT:
        raise BadShard(f"a row has 1 to {WIDTH_LIMIT:,} places")
    if not (_is_array(offsets, 1, "i8") and _is_array(places, 1, "i4") and _is_array(values, 1, "f4")):
        raise BadShard("sparse features are offsets, places and values")
    if len(offsets) != rows + 1 or len(places) != len(values):
        raise BadShard("sparse features have one offset a row and one more, and one value a place")
    if offsets[0] != 0 or offsets[-1] != len(places) or (offsets[1:] < offsets[:-1]).any():
        raise BadShard("the offsets of a sparse shard begin with 0, never fall, and end with the last place")
    if len(places) and (places.min() < 0 or places.max() >= width):
        raise BadShard(f"a place of the shard is not one of {width:,}")
    _check_finite(values)
    return SparseFeatures(offsets, places, values, width)


def _is_array(value: Any, dimensions: int, dtype: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == dimensions and value.dtype == np.dtype(dtype)


def _check_finite(values: npt.NDArray[Any]) -> None:
    if values.dtype != np.uint8 and not np.isfinite(values).all():
        raise BadShard("a feature is not a finite number")
