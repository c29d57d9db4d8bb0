"""All randomness of one call, from the cloud's seed and the call's id alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

_UNIFORM = 2.0**-64
_LARGEST = 1.0 - 2.0**-53
_inverse = NormalDist().inv_cdf


@dataclass(frozen=True, slots=True)
class Draws:
    """Two are standard normal, the others uniform in (0, 1)."""

    start_normal: float
    straggler_normal: float
    failure: float
    failure_at: float
    late: float


@dataclass(frozen=True)
class DrawColumns:
    """The same of several names, without that of the start."""

    straggler_normal: npt.NDArray[np.float64]
    failure: npt.NDArray[np.float64]
    failure_at: npt.NDArray[np.float64]
    late: npt.NDArray[np.float64]


@lru_cache(4096)
def draw(seed: int, name: str) -> Draws:
    """Return the draws of a name. They depend on nothing else than the seed, neither on time nor on place.

    A hash instead of a generator: seeding one of numpy's takes longer than the rest of a simulated call. A forecast
    asks for the same again and again: it moves one number at a time and leaves the chance as it is.
    """
    digest = _digest(seed, name)
    uniform = [(int.from_bytes(digest[at : at + 8], "little") + 0.5) * _UNIFORM for at in range(0, 40, 8)]
    # The largest hashes round to 1, where the normal has no value.
    first, second = (min(share, _LARGEST) for share in uniform[:2])
    return Draws(_inverse(first), _inverse(second), uniform[2], uniform[3], uniform[4])


def draw_columns(seed: int, names: Sequence[str]) -> DrawColumns:
    """Return the draws of several names, equal to those of each."""
    digests = b"".join([_digest(seed, name) for name in names])
    uniform = (np.frombuffer(digests, "<u8").reshape(len(names), 5).astype(np.float64) + 0.5) * _UNIFORM
    normal = np.array([_inverse(share) for share in np.minimum(uniform[:, 1], _LARGEST).tolist()])
    return DrawColumns(normal, *uniform[:, 2:].T.copy())


def _digest(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=40).digest()
