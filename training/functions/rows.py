"""The rows of a call: those that came with it, or those that it names where the platform holds them."""

from __future__ import annotations

from collections.abc import Sequence

from training.data.manifest import RowRange
from training.data.rows import DenseFeatures, Rows
from training.data.shard import rows_of
from training.data.store import read_rows
from training.engine.messages import Call
from training.functions.body import WarmCache

_MEGABYTE = 2**20
_NUMBER_BYTES = 4


def rows_of_call(call: Call, ranges: Sequence[RowRange], warm_cache: WarmCache) -> Rows:
    """Return the call's rows. Raises ValueError or LookupError, one sentence, if they are not there or were changed."""
    wanted = sum(part.rows for part in ranges)
    rows = rows_of(call.inputs[0]) if call.inputs else read_rows(warm_cache.store(), ranges)
    if len(rows) != wanted:
        raise ValueError(f"{len(rows)} rows are here; {wanted} were named")
    return rows


def bytes_of(rows: Rows) -> int:
    """Return how many bytes these rows have: a sum by the rows alone, wherever they came from."""
    features = rows.features
    if isinstance(features, DenseFeatures):
        return int(rows.targets.nbytes + features.values.nbytes)
    return int(
        rows.targets.nbytes + features.offsets.nbytes + features.places.nbytes + features.values.nbytes
    )


def memory_mb(rows: Rows, numbers: int, copies: int) -> int:
    """Return about how much memory a call needs beside its process: its rows, read and decoded, and so many copies of
    the parameters.
    """
    return -(-(2 * bytes_of(rows) + copies * _NUMBER_BYTES * numbers) // _MEGABYTE)
