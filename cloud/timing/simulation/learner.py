"""The learner's place: a server that is ordered once, or a function that starts when there is an update.

Simultaneous updates are shared out over its GPUs (or, without any, its machines): with k of them on one each runs at
1 / (1 + (k − 1) · sharing) of its speed. Shares are exact fractions, so that hand-calculated cases agree to the
nanosecond.
"""

from __future__ import annotations

import math
from collections import deque
from fractions import Fraction
from typing import Literal

from cloud.timing.numbers.profile import LearnerPlace
from cloud.timing.simulation.simulated_call import SimulatedCall
from cloud.timing.simulation.speed import Speeds
from cloud.timing.virtual_time import to_ns


class _Device:
    """One GPU, or a machine without any. `left_ns` says how long each of its updates would still run alone.

    An update that has been alone is counted in whole nanoseconds: fractions take longer, and are for those that share.
    """

    def __init__(self, sharing: dict[bool, Fraction]) -> None:
        self.left_ns: dict[SimulatedCall, Fraction | int] = {}
        self._sharing = sharing
        self._looked_ns = 0

    def next_end(self) -> tuple[int, SimulatedCall] | None:
        """Return which update ends first, and when, if no other joins."""
        if not self.left_ns:
            return None
        call, left_ns = min(self.left_ns.items(), key=lambda item: item[1])
        return self._looked_ns + math.ceil(left_ns * self._slowness()), call

    def look(self, now_ns: int) -> None:
        """Advance all running updates to now."""
        if self.left_ns:
            slowness, passed_ns = self._slowness(), now_ns - self._looked_ns
            done_ns = passed_ns if isinstance(slowness, int) else passed_ns / slowness
            self.left_ns = {call: max(0, left - done_ns) for call, left in self.left_ns.items()}
        self._looked_ns = now_ns

    def _slowness(self) -> Fraction | int:
        """Return how many times longer everything takes than alone; the largest of all kinds of network."""
        others = len(self.left_ns) - 1
        if others < 1:
            return 1
        return 1 + others * max(self._sharing[call.work.pictures] for call in self.left_ns)


class SimulatedLearner:
    """Runs up to `lanes` updates at once; the next in the queue begins when one ends.

    An update runs on the device with the fewest at its beginning, of those alike on the first.
    """

    def __init__(
        self,
        place: LearnerPlace,
        where: Literal["server", "function"],
        lanes: int,
        speeds: Speeds,
        devices: int = 1,
    ) -> None:
        self.where = where
        self._server_start_ns = to_ns(place.server_start_s.value)
        self._function_start_ns = to_ns(place.function_start_s.value)
        self._keep_warm_ns = to_ns(place.function_keep_warm_s.value)
        self._warm_ns = speeds.warm_ns if where == "function" else 0
        sharing = {
            False: Fraction(str(place.sharing_mlp.value)),
            True: Fraction(str(place.sharing_cnn.value)),
        }
        self._devices = [_Device(sharing) for _ in range(devices)]
        self._lanes = lanes
        self._busy = 0
        self._waiting: deque[SimulatedCall] = deque()
        self._idle_since: list[int] = []
        self.ordered_ns: int | None = None

    def order(self, now_ns: int) -> None:
        """Start the server's rent; it is ready after its start-up. A function is not ordered."""
        if self.ordered_ns is None and self.where == "server":
            self.ordered_ns = now_ns

    def admit(self, call: SimulatedCall) -> SimulatedCall | None:
        if self._busy < self._lanes:
            self._busy += 1
            return call
        self._waiting.append(call)
        return None

    def begin(self, call: SimulatedCall, now_ns: int) -> int:
        """Set the call's start time. Return when it begins: a server may still be starting."""
        if self.where == "server":
            assert self.ordered_ns is not None
            call.starting_ns = 0
            return max(now_ns, self.ordered_ns + self._server_start_ns)
        while self._idle_since and self._idle_since[0] < now_ns - self._keep_warm_ns:
            del self._idle_since[0]
        call.cold = not self._idle_since
        if self._idle_since:
            self._idle_since.pop()
        call.starting_ns = self._function_start_ns if call.cold else self._warm_ns
        return now_ns

    def run(self, call: SimulatedCall, run_ns: int, now_ns: int) -> None:
        """Begin the update's computation, which slows all others on its device."""
        call.place = device = min(self._devices, key=lambda each: len(each.left_ns))
        device.look(now_ns)
        device.left_ns[call] = run_ns

    def next_end(self) -> tuple[int, SimulatedCall] | None:
        """Return which update ends first, and when, if no other joins."""
        ends = [end for device in self._devices if (end := device.next_end()) is not None]
        return min(ends, key=lambda end: end[0], default=None)

    def release(self, call: SimulatedCall, now_ns: int, survives: bool) -> SimulatedCall | None:
        """End or give up the update. Return the next call in the queue, if it may begin."""
        device: _Device | None = call.place
        if device is not None:
            device.look(now_ns)
            device.left_ns.pop(call, None)
        if survives and self.where == "function":
            self._idle_since.append(now_ns)
        if self._waiting:
            return self._waiting.popleft()
        self._busy -= 1
        return None

    def withdraw(self, call: SimulatedCall) -> None:
        self._waiting.remove(call)
