"""Virtual time in whole nanoseconds, so that sums are exact and do not depend on their order."""

from __future__ import annotations

NS = 1_000_000_000
_NS_PER_MS = 1_000_000
_LONGEST_S = 1e9


def to_ns(seconds: float) -> int:
    """Return whole nanoseconds, at most thirty years, also for infinity."""
    return round(min(seconds, _LONGEST_S) * NS)


def billed_ms(duration_ns: int) -> int:
    """Return started milliseconds, which functions are billed by."""
    return -(-duration_ns // _NS_PER_MS)
