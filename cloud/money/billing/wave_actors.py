"""Where the calls of a wave run in each lane: functions that are warm or cold, or actors that are kept.

The same as `cloud/timing/simulation/functions.py` and `pool.py` for all lanes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloud.money.billing.lane_arrays import LONG_AGO_NS, Bools, doubles, ints
from cloud.money.billing.wave_coordinator import Coordinators
from cloud.money.billing.waves import Wave
from cloud.timing.numbers.profile import Functions, Pool
from cloud.timing.simulation.draws import Draws, draw
from cloud.timing.simulation.network import StartLimit
from cloud.timing.simulation.speed import Ints, Speeds
from cloud.timing.virtual_time import to_ns


@dataclass(frozen=True, eq=False)
class CallTimes:
    """When the calls of a wave arrived and ended, and how long they had waited and started."""

    arrived_ns: Ints
    end_ns: Ints
    startup_ns: Ints


class FunctionLanes:
    """The functions of each lane. Of its warm instances the one that was freed last takes the next call."""

    def __init__(
        self,
        fleets: Sequence[Functions],
        speeds: Sequence[Speeds],
        seeds: Sequence[int],
        coordinators: Coordinators,
    ) -> None:
        self._speeds, self._seeds, self._coordinators = speeds, seeds, coordinators
        self.left_out = np.zeros(len(fleets), np.bool_)
        self._warm_ns = ints(one.warm_ns for one in speeds)
        self._concurrent = ints(int(one.concurrent.value) for one in fleets)
        self._kept_ns = ints(to_ns(one.keep_warm_s.value) for one in fleets)
        self._at_once = ints(max(1, int(one.starts_at_once.value)) for one in fleets)
        self._ns_per_start = doubles(1e9 / one.starts_per_s.value for one in fleets)
        self._starts_full_ns = np.zeros(len(fleets))
        self._idle_ns = np.zeros((len(fleets), 0), np.int64)

    def begin(self, wave: Wave, now_ns: Ints, run_ns: Ints, failed: Bools) -> CallTimes:
        """Give each call the instance that was freed last, or a cold one where none is warm."""
        count = len(wave.tasks)
        self.left_out |= count > self._concurrent
        idle_ns = np.sort(self._idle_ns, axis=1)
        is_warm = idle_ns >= (now_ns - self._kept_ns)[:, None]
        idle_ns[~is_warm] = LONG_AGO_NS
        used = np.minimum(is_warm.sum(axis=1), count)
        idle_ns[np.arange(idle_ns.shape[1]) >= idle_ns.shape[1] - used[:, None]] = LONG_AGO_NS
        starting_ns = np.repeat(self._warm_ns[:, None], count, axis=1)
        for lane in np.flatnonzero(used < count).tolist():
            for place in range(int(used[lane]), count):
                chance = draw(self._seeds[lane], wave.works[place].id)
                starting_ns[lane, place] = self._speeds[lane].cold_ns(chance)
        self._start_cold(slice(None), now_ns, count - used)
        arrived_ns = self._coordinators.send_wave(wave, now_ns)
        end_ns = arrived_ns + starting_ns + run_ns
        known = idle_ns[:, (idle_ns > LONG_AGO_NS).any(axis=0)]
        self._idle_ns = np.concatenate([known, np.where(failed, LONG_AGO_NS, end_ns)], axis=1)
        return CallTimes(arrived_ns, end_ns, starting_ns)

    def begin_again(self, lane: int, sent_ns: int, chance: Draws) -> tuple[int, int]:
        """Return when another attempt begins, and how long its instance takes to start."""
        idle_ns = self._idle_ns[lane]
        free = np.where(idle_ns <= sent_ns, idle_ns, LONG_AGO_NS)
        last = free.argmax()
        if free[last] >= sent_ns - self._kept_ns[lane]:
            idle_ns[last] = LONG_AGO_NS
            return sent_ns, int(self._warm_ns[lane])
        self._start_cold(slice(lane, lane + 1), np.array([sent_ns]), np.array([1]))
        return sent_ns, self._speeds[lane].cold_ns(chance)

    def free_again(self, lane: int, count: int, place: int, end_ns: int, *, survives: bool) -> None:
        """Free the instance of another attempt. That of the attempt before is gone, so that its column is free."""
        if survives:
            self._idle_ns[lane, self._idle_ns.shape[1] - count + place] = end_ns

    def _start_cold(self, lanes: slice, now_ns: Ints, count: Ints) -> None:
        """Count cold starts against the cloud's limit; a lane in which one would have to wait is left out."""
        ns = self._ns_per_start[lanes]
        full_ns = np.maximum(self._starts_full_ns[lanes], now_ns) + count * ns
        self.left_out[lanes] |= (count > 0) & (full_ns - now_ns - self._at_once[lanes] * ns > 0.25)
        self._starts_full_ns[lanes] = np.where(count > 0, full_ns, self._starts_full_ns[lanes])


class PoolLanes:
    """The kept actors of each lane. The one that is free first takes the next call."""

    def __init__(
        self,
        pools: Sequence[Pool],
        speeds: Sequence[Speeds],
        seeds: Sequence[int],
        coordinators: Coordinators,
    ) -> None:
        self._coordinators = coordinators
        self.left_out = np.zeros(len(pools), np.bool_)
        self._lanes = range(len(pools))
        self._warm_ns = ints(one.warm_ns for one in speeds)
        self._free_ns = np.array([_ready_ns(*one) for one in zip(pools, speeds, seeds, strict=True)])

    def begin(self, wave: Wave, now_ns: Ints, run_ns: Ints, failed: Bools) -> CallTimes:
        """Give each call the actor that is free first."""
        count, warm_ns = len(wave.tasks), self._warm_ns
        if count <= self._free_ns.shape[1] and (self._free_ns <= now_ns[:, None]).all():
            arrived_ns = self._coordinators.send_wave(wave, now_ns)
            self._free_ns[:, :count] = end_ns = arrived_ns + warm_ns[:, None] + run_ns
            return CallTimes(arrived_ns, end_ns, np.repeat(warm_ns[:, None], count, axis=1))
        arrived_ns, end_ns, startup_ns = np.empty((3, *run_ns.shape), np.int64)
        for place, work in enumerate(wave.works):
            actor = self._free_ns.argmin(axis=1)
            begin_ns = np.maximum(now_ns, self._free_ns[self._lanes, actor])
            arrived_ns[:, place] = self._coordinators.send(begin_ns, work.bytes_in)
            end_ns[:, place] = arrived_ns[:, place] + warm_ns + run_ns[:, place]
            self._free_ns[self._lanes, actor] = end_ns[:, place]
            startup_ns[:, place] = begin_ns - now_ns + warm_ns
        return CallTimes(arrived_ns, end_ns, startup_ns)

    def begin_again(self, lane: int, sent_ns: int, chance: Draws) -> tuple[int, int]:
        """Return when another attempt begins, and how long the call takes to be handed over."""
        return max(sent_ns, int(self._free_ns[lane].min())), int(self._warm_ns[lane])

    def free_again(self, lane: int, count: int, place: int, end_ns: int, *, survives: bool) -> None:
        """Free the actor of another attempt, which was the first that was free."""
        self._free_ns[lane, self._free_ns[lane].argmin()] = end_ns


def _ready_ns(pool: Pool, speeds: Speeds, seed: int) -> list[int]:
    """Return when each kept actor is ready. All actors of a unit start together."""
    limit = StartLimit(pool.creates_at_once.value, pool.creates_per_s.value)
    ready_ns: list[int] = []
    for _ in range(pool.units or 0):
        start_ns = speeds.cold_ns(draw(seed, f"actor-{len(ready_ns)}"))
        ready_ns += [limit.begin_ns(0) + start_ns] * pool.actors_per_unit
    return ready_ns
