"""Which function instance takes a call, and when: concurrency, cold and warm. And the learner's one server."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Instance:
    """One started function, free from `free_ns` on. Instances of different memory are different functions."""

    free_ns: int
    number: int
    memory_mb: int


class Fleet:
    """Assigns calls in the order of their submission. All times are virtual nanoseconds.

    At most `concurrent` calls run at once; the next waits for the first to end. Of the warm instances the one that
    was freed last is taken, as clouds do, so that surplus ones grow cold; `keep_warm_ns` after its last call an
    instance is gone.
    """

    def __init__(self, concurrent: int, keep_warm_ns: int) -> None:
        self._concurrent = concurrent
        self._keep_warm_ns = keep_warm_ns
        self._busy_until: list[int] = []
        self._idle: dict[int, list[Instance]] = {}
        self._started = 0

    def turn(self, submitted_ns: int) -> int:
        """When a call submitted now may begin. Submissions come in the order of time."""
        del self._busy_until[: bisect_right(self._busy_until, submitted_ns)]
        ahead = len(self._busy_until)
        if ahead < self._concurrent:
            return submitted_ns
        return self._busy_until[ahead - self._concurrent]

    def take(self, begin_ns: int, memory_mb: int) -> Instance | None:
        """The warm instance for a call that begins then; None means a cold start."""
        idle = self._idle.setdefault(memory_mb, [])
        del idle[: bisect_left(idle, begin_ns - self._keep_warm_ns, key=lambda instance: instance.free_ns)]
        free = bisect_right(idle, begin_ns, key=lambda instance: instance.free_ns)
        return idle.pop(free - 1) if free else None

    def occupy(self, instance: Instance | None, memory_mb: int, until_ns: int, survives: bool) -> Instance:
        """The instance is busy until then; one that failed or was stopped is not used again."""
        if instance is None:
            self._started += 1
        number = self._started if instance is None else instance.number
        insort(self._busy_until, until_ns)
        after = Instance(until_ns, number, memory_mb)
        if survives:
            insort(self._idle.setdefault(memory_mb, []), after)
        return after

    def stop(self, instance: Instance, now_ns: int) -> None:
        """A cancelled call's instance ends now. One already promised to a later call keeps that promise."""
        idle = self._idle.get(instance.memory_mb, [])
        if instance in idle:
            idle.remove(instance)
        if instance.free_ns > now_ns and instance.free_ns in self._busy_until:
            self._busy_until.remove(instance.free_ns)


class LearnerServer:
    """One machine that runs learner calls in order. It is ordered with the first call and takes a while to start."""

    def __init__(self, server_start_ns: int) -> None:
        self._server_start_ns = server_start_ns
        self.ordered_ns: int | None = None
        self._free_ns = 0

    def turn(self, submitted_ns: int) -> int:
        """When a call submitted now may begin."""
        if self.ordered_ns is None:
            self.order(submitted_ns)
        return max(submitted_ns, self._free_ns)

    def order(self, now_ns: int) -> None:
        """Rent begins here; the server is ready a start-up later."""
        if self.ordered_ns is None:
            self.ordered_ns = now_ns
            self._free_ns = now_ns + self._server_start_ns

    def occupy(self, until_ns: int) -> None:
        self._free_ns = until_ns

    def stop(self, until_ns: int, now_ns: int) -> None:
        """A cancelled call that nobody waits behind leaves the server free."""
        if self._free_ns == until_ns:
            self._free_ns = now_ns
