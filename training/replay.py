"""Sampled data that waits for the learner: trajectories by version, and a circular buffer of batches to learn from
again, each a limited number of times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Trajectory:
    """The answer of one rollout, sampled with the policy of `version`.

    `name` is its task in this process, for the records; a trajectory from a checkpoint has none.
    """

    payload: bytes
    version: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True)
class KeptBatch:
    """A batch and how many times it has been learned from."""

    trajectories: tuple[Trajectory, ...]
    uses: int

    @property
    def oldest_version(self) -> int:
        return min(trajectory.version for trajectory in self.trajectories)


def newest_within(
    limit_bytes: int, waiting: tuple[Trajectory, ...], replay: tuple[KeptBatch, ...]
) -> tuple[tuple[Trajectory, ...], tuple[KeptBatch, ...]]:
    """Return the newest of both that have no more bytes together; what waits comes before what was used already."""
    room = limit_bytes
    for i, trajectory in reversed(list(enumerate(waiting))):
        room -= len(trajectory.payload)
        if room < 0:
            return waiting[i + 1 :], ()
    for i, batch in reversed(list(enumerate(replay))):
        room -= sum(len(trajectory.payload) for trajectory in batch.trajectories)
        if room < 0:
            return waiting, replay[i + 1 :]
    return waiting, replay


class CircularBuffer:
    """Holds the last few batches. A batch is removed when its uses are up or it is too old."""

    def __init__(self, batches: int, uses: int, kept: Iterable[KeptBatch] = ()) -> None:
        self._kept: deque[KeptBatch] = deque(kept, maxlen=batches)
        self._uses = uses

    @property
    def kept(self) -> tuple[KeptBatch, ...]:
        """What it holds, oldest first."""
        return tuple(self._kept)

    def choose(self, oldest_allowed: int) -> tuple[Trajectory, ...] | None:
        """Return the least used batch that is recent enough, or None."""
        for kept in self.kept:
            if kept.uses >= self._uses or kept.oldest_version < oldest_allowed:
                self._kept.remove(kept)
        return min(self._kept, key=lambda kept: kept.uses).trajectories if self._kept else None

    def holds(self, trajectories: tuple[Trajectory, ...]) -> bool:
        return any(kept.trajectories == trajectories for kept in self._kept)

    def record_use(self, trajectories: tuple[Trajectory, ...]) -> None:
        """Count that these were learned from: a batch that is new is added, if it may be used again."""
        for place, kept in enumerate(self._kept):
            if kept.trajectories == trajectories:
                self._kept[place] = replace(kept, uses=kept.uses + 1)
                return
        if self._uses > 1:
            self._kept.append(KeptBatch(trajectories, 1))
