"""What the calls of waves cost in each lane. Each length of a call is priced once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cloud.money.billing.bill import lines_of_call
from cloud.money.billing.waves import WaveRun
from cloud.money.pricing import CallPrice, Tariff, total
from cloud.timing.simulation.speed import Ints

_NS_PER_MS = 10**6


@dataclass(frozen=True, eq=False)
class BilledCalls:
    """Calls of one wave: their lanes, and for how long each is billed."""

    wave: int
    lanes: Ints
    billed_ms: Ints

    @staticmethod
    def of(wave: int, lanes: Ints, used_ns: Ints) -> BilledCalls:
        return BilledCalls(wave, lanes, -(-used_ns // _NS_PER_MS))


def price_calls(run: WaveRun, tariff: Tariff, billed: Sequence[BilledCalls], lanes: int) -> Ints:
    """Return the picodollars of all calls by lane and wave."""
    found = np.zeros((lanes, len(run.waves)), np.int64)
    for where, price in (("actor", tariff.actor), ("learner", tariff.learner)):
        there = [one for one in billed if run.waves[one.wave].where == where]
        if price is None or not there:
            continue
        lengths, which = np.unique(np.concatenate([one.billed_ms for one in there]), return_inverse=True)
        amounts = _amounts_of(price, where, run.actor_memory_mb, lengths.tolist())
        waves = np.concatenate([np.full(len(one.lanes), one.wave) for one in there])
        np.add.at(
            found,
            (np.concatenate([one.lanes for one in there]), waves),
            np.array(amounts, np.int64)[which],
        )
    return found


def _amounts_of(price: CallPrice, where: str, memory_mb: int, lengths_ms: Sequence[int]) -> list[int]:
    """Return what calls of these lengths cost. Other runs have calls of the same lengths."""
    known = _known_amounts(price, where, memory_mb)
    for ms in lengths_ms:
        if ms not in known:
            known[ms] = total(lines_of_call(price, where, memory_mb, ms))
    return [known[ms] for ms in lengths_ms]


@lru_cache(maxsize=16)
def _known_amounts(price: CallPrice, where: str, memory_mb: int) -> dict[int, int]:
    return {}
