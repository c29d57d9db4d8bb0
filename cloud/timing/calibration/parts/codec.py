"""How long an actor takes to encode a fragment, for each megabyte."""

from __future__ import annotations

import statistics
import time
from typing import Any

from cloud.timing.calibration.samples import trajectory
from training.engine.codec import decode, encode
from training.rl.environments.catalogue import ENTRIES

_FRAGMENTS = (("Hopper-v5", 256), ("Humanoid-v5", 256), ("Humanoid-v5", 1024), ("ALE/SpaceInvaders-v5", 128))
_BURSTS = 9


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return, for each repeat and fragment, its bytes and the microseconds to encode it."""
    documents = [
        decode(trajectory(ENTRIES[environment].spaces(4), steps, 1, 0)) for environment, steps in _FRAGMENTS
    ]
    return {
        "repeats": [
            [{"bytes": len(encode(document)), "us": _encoding_us(document)} for document in documents]
            for _ in range(arguments["repeats"])
        ]
    }


def _encoding_us(document: dict[str, Any]) -> float:
    bursts: list[float] = []
    for _ in range(_BURSTS):
        began_s = time.process_time()
        encode(document)
        bursts.append(time.process_time() - began_s)
    return statistics.median(bursts) * 1e6
