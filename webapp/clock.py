"""The time, as services see it.

Services take a clock as an argument, so that a test can say what time it is. Everything is aware UTC.
"""

from datetime import UTC, datetime
from typing import Protocol

from django.db import connection


class Clock(Protocol):
    """The only source of "now" inside services."""

    def now(self) -> datetime:
        """The present moment on this machine, timezone-aware."""
        ...

    def shared_now(self) -> datetime:
        """The present moment by the database's clock, timezone-aware. Leases go by it: machines compare them."""
        ...


class SystemClock:
    """The machine's own clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def shared_now(self) -> datetime:
        if connection.vendor == "sqlite":  # a library in this process: the machine's clock is the database's
            return datetime.now(UTC)
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            moment: datetime = cursor.fetchone()[0]
        return moment


SYSTEM_CLOCK = SystemClock()
