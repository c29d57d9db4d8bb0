"""Calls in flight in a dry run: retries as in the engine, and counts of all that is paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from cloud.money.billing.work import CallRecord
from cloud.timing.simulation.core import Simulation
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.virtual_time import billed_ms, to_ns
from training.calls import KINDS

Counts = npt.NDArray[np.float64]
_NEVER_NS = 2**62


class AllCallsFail(RuntimeError):
    """No call succeeds any more: such a job stops by itself."""


class Count(IntEnum):
    """Indices of the counts of a whole run: its time, rented time, and events. POOL is the rented time of a pool's
    actors. `BilledKind` counts come after them, for each kind of call.
    """

    TIME_NS = 0
    POOL_NS = 1
    CALLS = 2
    COLD = 3
    FAILED = 4
    STEPS = 5
    DETOURS = 6


class BilledKind(IntEnum):
    """What calls of one kind are billed for: their time and their number, by place. READY is time on provisioned
    functions.
    """

    ACTOR_MS = 0
    ACTOR_READY_MS = 1
    ON_ACTORS = 2
    LEARNER_MS = 3
    ON_LEARNER = 4


def index_of(kind: str, what: BilledKind) -> int:
    """Return the index of a count of this kind's calls."""
    return len(Count) + list(KINDS).index(kind) * len(BilledKind) + what


def no_counts() -> Counts:
    """Return zero for everything that is counted."""
    return np.zeros(len(Count) + len(KINDS) * len(BilledKind))


def of_actors() -> list[int]:
    """Return the counts for each actor, which a small fleet that represents a larger one undercounts."""
    once = [Count.POOL_NS, Count.CALLS, Count.COLD, Count.FAILED, Count.STEPS, Count.DETOURS]
    of_calls = [BilledKind.ACTOR_MS, BilledKind.ACTOR_READY_MS, BilledKind.ON_ACTORS]
    return [*once, *(index_of(kind, what) for kind in KINDS for what in of_calls)]


class PoolTime:
    """A pool that grows with the calls in flight, as the meter rents it: the total time of its actors."""

    def __init__(self, simulation: Simulation, most: int, idle_s: float) -> None:
        self._simulation = simulation
        self._most = most
        self._idle_ns = to_ns(idle_s)
        self._ordered_ns: list[int] = []
        self._needed_ns: list[int] = []
        self._stood_ns = 0

    def stood_ns(self) -> int:
        now_ns = self._simulation.now_ns
        return self._stood_ns + sum(now_ns - ordered_ns for ordered_ns in self._ordered_ns)

    def landed(self, in_flight: int) -> None:
        """A call has landed and left this many in flight."""
        if in_flight < len(self._needed_ns):
            self._needed_ns[in_flight] = self._simulation.now_ns

    def look(self, in_flight: int) -> None:
        """Give up actors without work, from the last one down."""
        before = len(self._ordered_ns)
        while len(self._ordered_ns) > in_flight:
            gone_ns = self._needed_ns[-1] + self._idle_ns
            if gone_ns > self._simulation.now_ns:
                break
            self._stood_ns += gone_ns - self._ordered_ns.pop()
            self._needed_ns.pop()
        if len(self._ordered_ns) < before:
            self._simulation.prepare(len(self._ordered_ns))

    def grow(self, in_flight: int) -> None:
        """Grow for this many calls in flight from now on."""
        wanted = min(in_flight, self._most)
        if wanted > len(self._ordered_ns):
            missing = wanted - len(self._ordered_ns)
            self._ordered_ns += [self._simulation.now_ns] * missing
            self._needed_ns += [self._simulation.now_ns] * missing
            self._simulation.prepare(wanted)


class SimulatedFlight:
    """Single-threaded. `again` makes the next attempt of a failed call."""

    def __init__(
        self,
        simulation: Simulation,
        attempts: Mapping[str, int],
        again: Callable[[CallRecord], CallRecord],
        pool: PoolTime | None,
    ) -> None:
        self.simulation = simulation
        self._attempts = attempts
        self._begins = {name: index_of(name, BilledKind.ACTOR_MS) for name in KINDS}
        self._again = again
        self._pool = pool
        self._actors_flying = 0
        self._counts: list[int] = [0] * len(no_counts())

    def snapshot(self) -> Counts:
        """Return all counts so far."""
        self._counts[Count.TIME_NS] = self.simulation.now_ns
        self._counts[Count.POOL_NS] = self._pool.stood_ns() if self._pool is not None else 0
        return np.array(self._counts, dtype=np.float64)

    def count_learned(self, steps: int) -> None:
        self._counts[Count.STEPS] += steps

    def send(self, works: Sequence[CallRecord]) -> None:
        actors = sum(work.where == "actor" for work in works)
        if self._pool is not None and actors:
            self._pool.look(self._actors_flying)
            self._pool.grow(self._actors_flying + actors)
        self._actors_flying += actors
        for work in works:
            self.simulation.submit(work)

    def next(self) -> tuple[CallRecord, bool] | None:
        """Return the next call to end, and whether it was done; None when none is in flight."""
        while True:
            call = self.simulation.next(_NEVER_NS)
            if call is None:
                return None
            work = call.work
            self._land(call)
            if not call.fault:
                return work, True
            self._counts[Count.FAILED] += call.fault != "cancelled"
            if call.fault == "cancelled" or work.attempt >= self._attempts[work.kind]:
                return work, False
            self.send([self._again(work)])

    def gather(self, works: Sequence[CallRecord]) -> int:
        """Run all of `works` to their ends. Return how many of those that sample were done."""
        self.send(works)
        done = 0
        while (landed := self.next()) is not None:
            done += landed[1] and KINDS[landed[0].kind].role == "sampling"
        return done

    def cancel(self, names: Sequence[str]) -> None:
        """Stop the calls with these ids, and land all calls in flight."""
        for call_id in names:
            self.simulation.cancel(call_id)
        while self.next() is not None:
            pass

    def _land(self, call: SimulatedCall) -> None:
        work, counts = call.work, self._counts
        counts[Count.CALLS] += 1
        if work.where == "actor":
            self._actors_flying -= 1
            if self._pool is not None:
                self._pool.landed(self._actors_flying)
                self._pool.look(self._actors_flying)
            counts[Count.COLD] += call.cold
            counts[Count.DETOURS] += call.detours
        billed = billed_ms(call.billed_ns)
        if not billed:
            return
        first = self._begins[work.kind]
        if work.where == "learner":
            counts[first + BilledKind.LEARNER_MS] += billed
            counts[first + BilledKind.ON_LEARNER] += 1
            return
        counts[first + BilledKind.ACTOR_MS + call.provisioned] += billed
        counts[first + BilledKind.ON_ACTORS] += 1


def flight_of(
    simulation: Simulation, attempts: Mapping[str, int], again: Callable[[CallRecord], CallRecord], pool: Any
) -> SimulatedFlight:
    """Return a flight that counts a pool's time if the tariff charges it: `pool` is a `PoolPrice` or None."""
    counted = PoolTime(simulation, pool.most, pool.idle_s) if pool is not None else None
    return SimulatedFlight(simulation, attempts, again, counted)
