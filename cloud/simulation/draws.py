"""All randomness of one call, from the cloud's seed and the call's id alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from statistics import NormalDist

_UNIFORM = 2.0**-64
_inverse = NormalDist().inv_cdf


@dataclass(frozen=True, slots=True)
class Draws:
    """Two are standard normal, the others uniform in (0, 1)."""

    start_normal: float
    straggler_normal: float
    failure: float
    failure_at: float
    late: float


def draw(seed: int, name: str) -> Draws:
    """Return the draws of a name. They depend on nothing else than the seed, neither on time nor on place.

    A hash instead of a generator: seeding one of numpy's takes longer than the rest of a simulated call.
    """
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=40).digest()
    uniform = [(int.from_bytes(digest[at : at + 8], "little") + 0.5) * _UNIFORM for at in range(0, 40, 8)]
    # The largest hashes round to 1, where the normal has no value.
    first, second = (min(one, 1.0 - 2.0**-53) for one in uniform[:2])
    return Draws(_inverse(first), _inverse(second), uniform[2], uniform[3], uniform[4])
