"""The network of calls: each actor's own line, and the coordinator's one line, which all share."""

from __future__ import annotations

from cloud.timing.numbers.profile import NetworkProfile
from cloud.timing.virtual_time import to_ns


class SharedLine:
    """The coordinator's line, one for each direction. Messages pass one after the other, first come, first served.

    It must be called in the order of time.
    """

    def __init__(self, mbit_per_s: float) -> None:
        self.ns_per_byte = 8_000.0 / mbit_per_s
        self._free_ns = 0

    def through(self, now_ns: int, byte_count: int) -> int:
        """Return when the last byte of a message sent now has passed."""
        begin_ns = self._free_ns if self._free_ns > now_ns else now_ns
        self._free_ns = begin_ns + round(byte_count * self.ns_per_byte)
        return self._free_ns


class Transfers:
    """Transfers to actors and back. A payload too large for a request goes by storage, with a detour each time."""

    def __init__(self, network: NetworkProfile) -> None:
        self._out, self._back = (SharedLine(network.coordinator_mbit_per_s.value) for _ in range(2))
        self.line_ns_per_byte = self._out.ns_per_byte
        self.actor_ns_per_byte = 8_000.0 / network.actor_mbit_per_s.value
        self._limit_bytes = network.payload_limit_mb.value * 1e6
        self._detour_ns = to_ns(network.detour_s.value)
        self.round_trip_ns = to_ns(network.round_trip_s.value)

    def to_actor(self, now_ns: int, byte_count: int) -> int:
        """Return when a call sent now arrives at its actor."""
        return self._passed(self._out, now_ns, byte_count)

    def to_coordinator(self, now_ns: int, byte_count: int) -> int:
        """Return when an outcome sent now arrives; the round trip is counted here."""
        return self._passed(self._back, now_ns, byte_count) + self.round_trip_ns

    def is_detour(self, byte_count: int) -> bool:
        return byte_count > self._limit_bytes

    def _passed(self, line: SharedLine, now_ns: int, byte_count: int) -> int:
        own_ns = now_ns + round(byte_count * self.actor_ns_per_byte)
        shared_ns = line.through(now_ns, byte_count)
        detour_ns = self._detour_ns if byte_count > self._limit_bytes else 0
        return max(own_ns, shared_ns) + detour_ns


class StartLimit:
    """A provider's limit on starts: `at_once` in a moment, refilled at `per_s`. It must be called in the order of
    time.
    """

    def __init__(self, at_once: float, per_s: float) -> None:
        self._at_once = max(1, int(at_once))
        self._ns_per_start = 1e9 / per_s
        self._full_ns = 0.0

    def begin_ns(self, now_ns: int) -> int:
        """Return when a start requested now may begin: when its token is available."""
        earliest_full_ns = self._full_ns if self._full_ns > now_ns else float(now_ns)
        # The bucket is full at `_full_ns`; one token more is missing after each start.
        self._full_ns = earliest_full_ns + self._ns_per_start
        wait_ns = self._full_ns - now_ns - self._at_once * self._ns_per_start
        return now_ns + max(0, round(wait_ns))
