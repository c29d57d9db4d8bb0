"""Kept actors that take call after call: containers that pull, machines of a cluster, the cores of one machine."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cloud.timing.numbers.profile import Pool
from cloud.timing.simulation.draws import draw
from cloud.timing.simulation.network import StartLimit
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.simulation.speed import Speeds


@dataclass(slots=True, eq=False)
class SimulatedActor:
    """One kept actor from its order to its end. `used`: it has had a call, so it is warm."""

    number: int
    ordered_ns: int
    ready_ns: int
    gone_ns: int | None = None
    used: bool = False
    free: bool = False


class SimulatedActorPool:
    """Calls wait for a free actor, first come, first served; of the free actors the lowest number is used.

    `prepare` sets how many there are; the payer decides that. `at_ready(actor)` schedules the call of `ready`.
    """

    def __init__(
        self, pool: Pool, speeds: Speeds, seed: int, at_ready: Callable[[SimulatedActor], None]
    ) -> None:
        self._limit = StartLimit(pool.creates_at_once.value, pool.creates_per_s.value)
        self._per_unit = pool.actors_per_unit
        self._speeds = speeds
        self._seed = seed
        self._at_ready = at_ready
        self._waiting: deque[SimulatedCall] = deque()
        self.actors: list[SimulatedActor] = []
        self._kept: list[SimulatedActor] = []
        self._free: list[int] = []

    def prepare(self, count: int, now_ns: int) -> None:
        """Have `count` actors: order more in whole units, or release surplus ones when they have no work. All actors of
        a unit start together.
        """
        while len(self._kept) < count:
            first = len(self.actors)
            begin_ns = self._limit.begin_ns(now_ns)
            start_ns = self._speeds.cold_ns(draw(self._seed, f"actor-{first}"))
            for number in range(first, first + min(self._per_unit, count - len(self._kept))):
                actor = SimulatedActor(number, now_ns, begin_ns + start_ns)
                self.actors.append(actor)
                self._kept.append(actor)
                self._at_ready(actor)
        idle = [actor for actor in self._kept if actor.free or actor.ready_ns > now_ns]
        for actor in idle[::-1][: max(0, len(self._kept) - count)]:
            actor.gone_ns, actor.free = now_ns, False
            self._kept.remove(actor)

    def ready(self, actor: SimulatedActor) -> SimulatedCall | None:
        """Mark the actor as started. Return the first call in the queue, if any."""
        if actor.gone_ns is not None:
            return None
        return self._serve(actor)

    def admit(self, call: SimulatedCall) -> SimulatedCall | None:
        while self._free:
            actor = self.actors[heapq.heappop(self._free)]
            if actor.free:
                actor.free = False
                call.place = actor
                return call
        self._waiting.append(call)
        return None

    def begin(self, call: SimulatedCall, now_ns: int) -> int:
        actor: SimulatedActor = call.place
        call.cold, actor.used = not actor.used, True
        call.starting_ns = self._speeds.warm_ns
        return now_ns

    def release(self, call: SimulatedCall, now_ns: int, survives: bool) -> SimulatedCall | None:
        """Free the actor, also after a failure: its process is restarted in place. Return the next call, if any."""
        actor: SimulatedActor = call.place
        return self._serve(actor) if actor.gone_ns is None else None

    def withdraw(self, call: SimulatedCall) -> None:
        self._waiting.remove(call)

    def close(self, now_ns: int) -> None:
        for actor in self._kept:
            actor.gone_ns = now_ns
        self._kept.clear()

    def _serve(self, actor: SimulatedActor) -> SimulatedCall | None:
        if not self._waiting:
            actor.free = True
            heapq.heappush(self._free, actor.number)
            return None
        call = self._waiting.popleft()
        actor.free = False
        call.place = actor
        return call
