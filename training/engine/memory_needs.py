"""The parts of the memory that a job takes at most. Each kind of training works out its own (`Task.memory_needs`).

The terms follow from what the code keeps at once; their factors and the processes' own memory were measured as peaks of
real runs (docs/memory.md). A sum is rather too large than too small: it decides whether a job may begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

MEGABYTE = 2**20
JOB_PROCESS, ACTOR_PROCESS = 140 * MEGABYTE, 64 * MEGABYTE
WEIGHTS_KEPT = 8
"""Versions of the policy that a job keeps for calls in flight (`cloud.actor.blobs`)."""
BLOBS_OF_WORKER = 9
"""Copies of the policy in an actor: those of the last versions, and the one that it computes with."""

Growth = Literal["process", "network", "round", "minibatch", "environments", "rows"]


class Need(NamedTuple):
    """A part of the memory. `of` says what it grows with."""

    of: Growth
    bytes: int


@dataclass(frozen=True)
class MemoryNeeds:
    """Peaks by their parts. `steps`: how many steps a round has; 0 without any.

    `documents` are the largest that the run encodes; none may be larger than `training.engine.codec.BODY_LIMIT_BYTES`.
    """

    job: tuple[Need, ...]
    actor: tuple[Need, ...]
    steps: int = 0
    documents: tuple[Need, ...] = ()

    @property
    def job_bytes(self) -> int:
        return sum(need.bytes for need in self.job)

    @property
    def actor_bytes(self) -> int:
        return sum(need.bytes for need in self.actor)


def largest_of(needs: Iterable[Need]) -> Need:
    """Return all that grows with what takes most, of what a spec's fields can make smaller."""
    sums: dict[Growth, int] = {}
    for need in needs:
        if need.of != "process":
            sums[need.of] = sums.get(need.of, 0) + need.bytes
    return max((Need(of, byte_count) for of, byte_count in sums.items()), key=lambda need: need.bytes)
