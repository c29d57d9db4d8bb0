"""A fleet of functions: which instance takes a call and when. Cold and warm, provisioned, concurrency and start
limits.
"""

from __future__ import annotations

from collections import deque

from cloud.timing.numbers.profile import Functions
from cloud.timing.simulation.network import StartLimit
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.simulation.speed import Speeds
from cloud.timing.virtual_time import to_ns

_PROVISIONED = "provisioned"
_ON_DEMAND = "on demand"


class FunctionFleet:
    """At most `concurrent` calls run at once; the next in the queue begins when one ends.

    Of the warm instances the most recently freed one is used, as clouds do, so that surplus ones grow cold. Instances
    of different memory are different functions. Provisioned ones are used first and are never cold.
    """

    def __init__(self, actors: Functions, speeds: Speeds, provisioned: int) -> None:
        self._concurrent = int(actors.concurrent.value)
        self._keep_warm_ns = to_ns(actors.keep_warm_s.value)
        self._limit = StartLimit(actors.starts_at_once.value, actors.starts_per_s.value)
        self._speeds = speeds
        self._provisioned_free = provisioned
        self._busy = 0
        self._waiting: deque[SimulatedCall] = deque()
        self._idle_since: dict[int, deque[int]] = {}

    def admit(self, call: SimulatedCall) -> SimulatedCall | None:
        """Return the call if it may begin now; else queue it."""
        if self._busy < self._concurrent:
            self._busy += 1
            return call
        self._waiting.append(call)
        return None

    def begin(self, call: SimulatedCall, now_ns: int) -> int:
        """Give the call an instance and set its start time. Return when it begins, which a start limit may delay."""
        memory_mb = call.work.memory_mb
        if self._provisioned_free:
            self._provisioned_free -= 1
            call.place, call.provisioned = _PROVISIONED, True
            call.starting_ns = self._speeds.warm_ns
            return now_ns
        call.place = _ON_DEMAND
        idle = self._idle_since.setdefault(memory_mb, deque())
        while idle and idle[0] < now_ns - self._keep_warm_ns:
            idle.popleft()
        if idle:
            idle.pop()
            call.starting_ns = self._speeds.warm_ns
            return now_ns
        call.cold = True
        call.starting_ns = self._speeds.cold_ns(call.draws)
        return self._limit.begin_ns(now_ns)

    def release(self, call: SimulatedCall, now_ns: int, survives: bool) -> SimulatedCall | None:
        """Free or remove the instance. Return the next call in the queue, if it may begin."""
        if call.place == _PROVISIONED:
            self._provisioned_free += 1
        elif survives:
            self._idle_since[call.work.memory_mb].append(now_ns)
        if self._waiting:
            return self._waiting.popleft()
        self._busy -= 1
        return None

    def withdraw(self, call: SimulatedCall) -> None:
        """Remove a call from the queue."""
        self._waiting.remove(call)
