"""How jobs share the cores of one Ray cluster.

An actor keeps its core for as long as it lives, so a job that came first could keep all cores until its end. Each job
follows two rules instead, by what the cluster says of all: the job with the most cores returns one actor at a time to a
job that waits and has fewer, and no job waits for more cores while one with fewer waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class JobCores:
    """The cores that one job holds. `each`: those of an actor. `waits`: some of its actors wait for cores."""

    job: str
    each: float
    held: float
    waits: bool


def must_hand_back(mine: JobCores, others: Iterable[JobCores]) -> bool:
    """Return True if this job has the most cores and would still not have fewer than a job that takes its actor's."""
    poorest = _poorest_waiting(others := tuple(others))
    if poorest is None or mine.held - mine.each < poorest.held + poorest.each:
        return False
    return mine == max((mine, *others), key=lambda each: (each.held, each.job))


def may_wait(mine: JobCores, others: Iterable[JobCores]) -> bool:
    """Return False if a job with fewer cores waits: a core that becomes free is for that one."""
    poorest = _poorest_waiting(others)
    return poorest is None or mine.held <= poorest.held


def _poorest_waiting(others: Iterable[JobCores]) -> JobCores | None:
    return min((other for other in others if other.waits), key=lambda other: other.held, default=None)
