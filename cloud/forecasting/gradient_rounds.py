"""The staleness-aware loop without data: slices, gradients and versions as `training.loops.staleness_aware` sends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cloud.billing.work import Work
from cloud.forecasting.concurrency import AllCallsFail, Flight
from cloud.forecasting.workload import Workload
from training.aggregation import GradientQueue, calibrated, fitting_learners
from training.loops.model import StalenessAware
from training.replay import Slice, Slices, Trajectory

_BARREN_AT_MOST = 3


@dataclass(frozen=True)
class _Sent:
    number: int
    slice: Slice
    version: int


class GradientRounds:
    """`_sent` are gradients in flight in order of launch, `_arrived` those of them that have landed. `_most` of them
    may be computed at once. `_gradient_ns` and `_sampling_ns` add up a round's calls.
    """

    def __init__(self, works: Workload, flight: Flight, loop: StalenessAware) -> None:
        self._works = works
        self._flight = flight
        self._loop = loop
        self._most = loop.learners
        self._queue = GradientQueue(self._most, loop.weights)
        self._slices = Slices()
        self._version = self._round = self._serial = self._slices_made = 0
        self._sampling: set[str] = set()
        self._actors = self._waiting = 0
        self._sent: dict[str, _Sent] = {}
        self._arrived: dict[str, bool] = {}
        self._applying = ""
        self._last: dict[int, int] = {}
        self._awaiting = self._fresh = 0
        self._learned = self._learned_in_flight = 0
        self._staleness: list[float] = []
        self._largest: float | None = None
        self._barren = self._failures = 0
        self._looked_ns = self._gradient_ns = self._sampling_ns = 0

    def next(self, actors: int) -> None:
        self._actors = actors
        while True:
            self._act()
            computed, sampled = len(self._sent) - len(self._arrived), len(self._sampling)
            landed = self._flight.next()
            self._look(computed, sampled)
            if landed is None or self._failures > _BARREN_AT_MOST * (actors + self._loop.learners):
                raise AllCallsFail
            if self._land(*landed):
                return

    def settle(self) -> None:
        flying = [*self._sampling, *self._sent, self._applying]
        ids = [f"{name}-a{attempt}" for name in flying if name for attempt in range(1, 11)]
        self._sampling.clear()
        self._sent.clear()
        self._applying = ""
        self._flight.cancel(ids)

    def _look(self, computed: int, sampled: int) -> None:
        """Count the time since the last look, in which so many gradients and fragments were in flight."""
        now_ns = self._flight.simulation.now_ns
        self._gradient_ns += computed * (now_ns - self._looked_ns)
        self._sampling_ns += sampled * (now_ns - self._looked_ns)
        self._looked_ns = now_ns

    @property
    def _quiet(self) -> bool:
        return not (
            self._sampling or self._sent or self._applying or self._queue.waiting or len(self._slices)
        )

    def _act(self) -> None:
        self._learn()
        if self._loop.actors_wait:
            if self._quiet:
                self._barren += 1
                if self._barren > _BARREN_AT_MOST * (1 + self._loop.trajectories_per_gradient):
                    raise AllCallsFail
                self._sample(self._actors)
            return
        size = self._loop.trajectories_per_gradient
        begun = (len(self._slices) + len(self._sent)) * size
        self._sample(2 * size * self._most - begun - self._waiting - len(self._sampling))

    def _sample(self, room: int) -> None:
        idle = self._actors - len(self._sampling)
        names = [f"n{self._serial + at}" for at in range(1, 1 + max(0, min(room, idle)))]
        self._serial += len(names)
        self._sampling |= set(names)
        if names:
            self._flight.send([self._works.sampling(name) for name in names])

    def _learn(self) -> None:
        """Cut slices, release what may be released, and send idle learners."""
        size = self._loop.trajectories_per_gradient
        in_turn = self._loop.actors_wait and self._loop.order == "launch"
        while self._waiting >= size and not (in_turn and self._sampling):
            self._waiting -= size
            self._slices_made += 1
            self._slices.put(Slice(self._slices_made, (Trajectory(b"", self._version),) * size))
        self._release()
        works = []
        while len(self._sent) + self._taken < self._most:
            one = self._slices.take()
            if one is None:
                break
            number = self._queue.launch(self._version)
            name = f"g{number}"
            self._sent[name] = _Sent(number, one, self._version)
            policies = self._older(self._queue.flying_versions) if self._loop.truncated.reads_policies else 0
            if self._works.task.keeps_sampling_policy:
                policies += self._older(trajectory.version for trajectory in one.trajectories)
            works.append(self._works.call("gradient", name, trajectories=size, policies=policies))
        if works:
            self._flight.send(works)

    def _older(self, versions: Iterable[int]) -> int:
        """Return how many other policies than the newest these are."""
        return len(set(versions) - {self._version})

    @property
    def _taken(self) -> int:
        """How many learners wait for the version that is being made, or for room in the queue."""
        awaiting = self._awaiting if self._loop.learners_wait else 0
        return max(awaiting, len(self._queue.waiting)) if self._applying else 0

    def _release(self) -> None:
        bound = self._loop.bound(self._round + 1, self._largest, 1)
        found = None if self._applying else self._queue.release(self._version, bound)
        if found is not None:
            self._staleness += found.staleness
            self._learned_in_flight = sum(self._last.pop(one.number, 0) for one in found.gradients)
            self._applying = f"v{self._version}-apply"
            self._awaiting = self._fresh
            count = len(found.gradients)
            self._flight.send([self._works.call("apply", self._applying, gradients=count)])
        self._fresh = 0

    def _land(self, work: Work, done: bool) -> bool:
        """Return whether a round is over."""
        over = False
        if work.name == self._applying:
            if not done:
                raise AllCallsFail
            self._applying, self._awaiting = "", 0
            self._version += 1
            self._barren = self._failures = 0
            self._learned += self._learned_in_flight
            over = not self._loop.goes_by_waves and self._learned >= self._a_round
        elif work.name in self._sampling:
            self._sampling.remove(work.name)
            self._failures = 0 if done else self._failures + 1
            self._waiting += done
        elif work.name in self._sent:
            self._arrived[work.name] = done
        self._take_gradients()
        if over or (self._loop.goes_by_waves and self._quiet and self._learned):
            self._end_round()
            return True
        return False

    @property
    def _a_round(self) -> int:
        return self._loop.samples_per_round or self._actors * self._works.steps_a_call

    def _end_round(self) -> None:
        self._round += 1
        self._flight.count_learned(self._learned)
        self._learned = 0
        if self._largest is None and self._staleness:
            self._largest = calibrated(self._staleness, self._loop.calibration)
        self._staleness = []
        if self._loop.fit_learners:
            self._most = fitting_learners(
                self._gradient_ns, self._sampling_ns / self._actors, self._loop.learners
            )
            self._queue.learners = self._most
        self._gradient_ns = self._sampling_ns = 0

    def _take_gradients(self) -> None:
        while True:
            self._learn()
            in_turn = self._loop.order == "launch"
            if in_turn and self._applying:
                return
            name = next(iter(self._sent if in_turn else self._arrived), "")
            if name not in self._arrived:
                return
            self._take(name, self._arrived.pop(name))

    def _take(self, name: str, done: bool) -> None:
        sent = self._sent.pop(name)
        number, one = sent.number, sent.slice
        if not done:
            self._failures += 1
            self._queue.lose(number)
            if one.failures + 1 < self._works.training.attempts:
                self._slices.give_back(replace(one, failures=one.failures + 1))
            return
        passes = one.passes + 1
        is_last = passes >= self._works.task.passes
        if self._queue.land(number, sent.version, b"", self._version) is None:
            self._queue.admit()
            self._fresh = 1
            if is_last:
                self._last[number] = len(one.trajectories) * self._works.steps_a_call
        if not is_last:
            self._slices.put(replace(one, passes=passes, failures=0))
