"""Arrays with a value, or a row, for each lane: a place with a seed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cloud.timing.simulation.speed import Doubles, Ints

Bools = npt.NDArray[np.bool_]

LONG_AGO_NS, NEVER_NS = -(2**61), 2**61


def ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def doubles(values: Iterable[float]) -> Doubles:
    return np.fromiter(values, np.float64)


def transfer_ns(byte_count: int | Ints, ns_per_byte: Doubles) -> Ints:
    return np.rint(byte_count * ns_per_byte).astype(np.int64)


def one_by_one(at_ns: Ints, took_ns: Ints, free_ns: Ints) -> Ints:
    """Return when each is done, if each begins when it comes and the one before it is done."""
    done_ns = took_ns.cumsum(axis=1)
    begin_ns = np.maximum(at_ns - (done_ns - took_ns), free_ns[:, None])
    ended_ns: Ints = np.maximum.accumulate(begin_ns, axis=1) + done_ns
    return ended_ns
