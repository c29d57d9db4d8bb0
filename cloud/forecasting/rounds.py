"""The engine's loops without data: which calls are sent when, and which wait for which."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Protocol

from cloud.billing.work import Work
from cloud.forecasting.concurrency import AllCallsFail, Flight
from cloud.forecasting.gradient_rounds import GradientRounds
from cloud.forecasting.workload import Workload
from training.loops.model import EPOCH_LOOPS, Asynchronous, LoopOfAnyKind, StalenessAware
from training.replay import CircularBuffer

_BARREN_AT_MOST = 3


class Rounds(Protocol):
    def next(self, actors: int) -> None:
        """Continue with this many actors until the next version is made."""

    def settle(self) -> None:
        """Stop all calls in flight, as at the end of a run."""


class WaitingRounds:
    """Synchronous and pipelined: a round is over when all its calls have landed."""

    def __init__(self, works: Workload, flight: Flight, *, pipelined: bool) -> None:
        self._works = works
        self._flight = flight
        self._pipelined = pipelined
        self._pending = 0
        self._number = 0

    def next(self, actors: int) -> None:
        for _ in range(_BARREN_AT_MOST):
            if self._pipelined and not self._pending:
                self._pending = self._sample(actors, [])
            elif self._pipelined:
                learned, self._pending = self._pending, self._sample(actors, [self._update(self._pending)])
                self._flight.count_learned(learned * self._works.steps_a_call)
                return
            elif done := self._sample(actors, []):
                self._flight.gather([self._update(done)])
                self._flight.count_learned(done * self._works.steps_a_call)
                return
        if not self._pending:
            raise AllCallsFail
        self.next(actors)

    def settle(self) -> None:
        """No call is in flight between two rounds."""

    def _sample(self, actors: int, with_them: list[Work]) -> int:
        self._number += 1
        works = [self._works.sampling(f"r{self._number}-s{slot}") for slot in range(actors)]
        return self._flight.gather([*with_them, *works])

    def _update(self, trajectories: int) -> Work:
        return self._works.update(f"r{self._number}-update", trajectories)


class AsynchronousRounds:
    """Asynchronous: every landing may send more, as `training.loops.asynchronous` does."""

    def __init__(self, works: Workload, flight: Flight, loop: Asynchronous) -> None:
        self._works = works
        self._flight = flight
        self._loop = loop
        self._version = 0
        self._serial = 0
        self._idle: list[int] = []
        self._slots = 0
        self._actors = 0
        self._sampling: dict[str, tuple[int, int]] = {}
        self._ready: list[int] = []
        self._updating = ""
        self._learning = 0
        self._failures = 0
        self._replay: CircularBuffer[int] = CircularBuffer(*works.task.replay)

    def next(self, actors: int) -> None:
        self._actors = actors
        for slot in range(self._slots, actors):
            heapq.heappush(self._idle, slot)
        self._slots = max(self._slots, actors)
        while True:
            self._send_learner()
            self._send_actors()
            landed = self._flight.next()
            if landed is None or self._failures > 3 * actors:
                raise AllCallsFail
            if self._land(*landed):
                return

    def settle(self) -> None:
        flying = [name for name in (*self._sampling, self._updating) if name]
        # The next attempt of a failed call has another id.
        ids = [f"{name}-a{attempt}" for name in flying for attempt in range(1, 11)]
        self._sampling.clear()
        self._updating = ""
        self._flight.cancel(ids)

    @property
    def _per_update(self) -> int:
        return self._loop.trajectories_per_update or self._actors

    @property
    def _oldest(self) -> int:
        return max(0, self._version - self._loop.staleness_limit)

    def _send_actors(self) -> None:
        updates = self._loop.staleness_limit + (not self._updating)
        room = self._per_update * updates - len(self._ready) - len(self._sampling)
        works: list[Work] = []
        while room > len(works) and self._idle and self._idle[0] < self._actors:
            self._serial += 1
            work = self._works.sampling(f"n{self._serial}")
            self._sampling[work.name] = (heapq.heappop(self._idle), self._version)
            works.append(work)
        if works:
            self._flight.send(works)

    def _send_learner(self) -> None:
        if self._updating:
            return
        batch: tuple[int, ...] | None = None
        if len(self._ready) >= self._per_update:
            self._ready = [version for version in self._ready if version >= self._oldest]
        is_new = len(self._ready) >= self._per_update
        if is_new:
            batch = tuple(self._ready[: self._per_update])
            self._ready = self._ready[self._per_update :]
            self._replay.put(batch, min(batch))
        else:
            batch = self._replay.take(self._oldest)
        if batch:
            self._updating = f"v{self._version}-update"
            self._learning = len(batch) if is_new else 0
            self._flight.send([self._works.update(self._updating, len(batch))])

    def _land(self, work: Work, done: bool) -> bool:
        """Return whether a new version was made."""
        if work.name == self._updating:
            self._updating = ""
            if not done:
                raise AllCallsFail
            self._version += 1
            self._flight.count_learned(self._learning * self._works.steps_a_call)
            return True
        slot, version = self._sampling.pop(work.name)
        heapq.heappush(self._idle, slot)
        self._failures = 0 if done else self._failures + 1
        if done:
            self._ready.append(version)
        return False


class EpochRounds:
    """Loops over epochs: every landing may send more, as `training.loops.epochs` does. A round is an epoch."""

    def __init__(self, works: Workload, flight: Flight, *, together: bool) -> None:
        self._works = works
        self._flight = flight
        self._together = together
        self._number = 0

    def next(self, actors: int) -> None:
        calls, idle, flying, waiting, merging, merged = self._works.calls_an_epoch, actors, 0, 0, 0, 0
        sent = 0
        while True:
            if waiting and not merging and not (self._together and flying):
                waiting, merging = 0, waiting
                self._flight.send([self._works.update(self._name(), merging)])
            if not (self._together and (flying or merging)):
                more = min(idle, calls - sent)
                self._flight.send([self._works.sampling(self._name()) for _ in range(more)])
                idle, flying, sent = idle - more, flying + more, sent + more
            landed = self._flight.next() if flying or merging else None
            if landed is None:
                break
            work, done = landed
            if work.kind == self._works.task.learning:
                if not done:
                    raise AllCallsFail
                idle, merged, merging = idle + merging, merged + merging, 0
            else:
                flying, waiting, idle = flying - 1, waiting + done, idle + (not done)
        if not merged:
            raise AllCallsFail
        self._flight.count_learned(merged * self._works.steps_a_call)

    def _name(self) -> str:
        self._number += 1
        return f"n{self._number}"

    def settle(self) -> None:
        """No call is in flight between two rounds."""


def rounds_of(loop: LoopOfAnyKind, works: Workload, flight: Flight) -> Rounds:
    if isinstance(loop, EPOCH_LOOPS):
        return EpochRounds(works, flight, together=loop.steps_together)
    if isinstance(loop, Asynchronous):
        return AsynchronousRounds(works, flight, loop)
    if isinstance(loop, StalenessAware):
        return GradientRounds(works, flight, loop)
    return WaitingRounds(works, flight, pipelined=loop.kind == "pipelined")


def next_attempt(work: Work) -> Work:
    """Return the next attempt of a failed call."""
    attempt = work.attempt + 1
    return replace(work, id=f"{work.name}-a{attempt}", attempt=attempt)
