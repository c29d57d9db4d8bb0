"""What a cloud itself says against going on faster, for whoever waits in front of the screen."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class HeldBack(Protocol):
    """A platform that knows why its calls wait. To be asked in the platform's own thread."""

    def held_back(self) -> str:
        """Whole sentences: why calls wait that could run, as the cloud or its limits have it; empty where none does."""
