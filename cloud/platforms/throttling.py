"""Why a cloud's own limits keep calls waiting, for the job's page."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ReportsThrottling(Protocol):
    """A platform that knows why its calls wait. To be called in the platform's own thread."""

    def throttling_reasons(self) -> str:
        """Return whole sentences: why calls wait that could run, in terms of the cloud's limits; empty if none does."""
