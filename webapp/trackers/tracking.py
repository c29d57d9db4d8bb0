"""What trackers have in common: what a run is called there, what is sent, and how sending fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

End = Literal["finished", "failed", "stopped", "paused"]


class NotTracked(Exception):
    """The tracker does not take this run; the text is a sentence for the job's page."""


class TryLater(NotTracked):
    """The tracker does not answer now, but may later."""


@dataclass(frozen=True)
class RunFacts:
    """How a run appears in a tracker. `parameters` are its spec by path."""

    job_id: str
    name: str
    parameters: Mapping[str, str]
    tags: Mapping[str, str]


class Row(NamedTuple):
    """Figures at a step of the run. Times are seconds since 1970, by the platform's clock."""

    step: int
    at_s: float
    figures: Mapping[str, float]


class Tracking(Protocol):
    """One run in one tracker. Every method may raise NotTracked, and may take its time: only a thread calls them."""

    def begin(self, facts: RunFacts) -> str:
        """Create the run, or find the one that an earlier process of the job made. Returns its page's address."""

    def send(self, rows: Sequence[Row]) -> None: ...

    def end(self, end: End, figures: Mapping[str, float]) -> None:
        """Record how the run ended. A paused one stays open."""

    def close(self) -> None:
        """Let go of everything, at once and without raising."""
