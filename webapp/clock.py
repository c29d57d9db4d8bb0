"""The time, as services see it.

Services take a clock as an argument, so that a test can say what time it is. Everything is aware UTC.
"""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; the only source of "now" inside services."""

    def now(self) -> datetime:
        """The present moment, timezone-aware."""
        ...


class SystemClock:
    """The machine's own clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


SYSTEM_CLOCK = SystemClock()
