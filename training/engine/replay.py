"""Sampled data that waits for the learner: contributions by version, a circular buffer of batches to learn from again,
and slices that learners take in several passes, each a limited number of times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar


@dataclass(frozen=True)
class Contribution:
    """The answer of one call that makes data, with version `version`: what a kind of training learns from, a trajectory
    or a push.

    `name` is its task in this process, for the records; a contribution from a checkpoint has none.
    """

    payload: bytes
    version: int
    name: str = field(default="", compare=False)


Item = TypeVar("Item")


@dataclass(frozen=True)
class KeptBatch(Generic[Item]):
    """A batch, the oldest version in it, and how many times it has been learned from."""

    batch: tuple[Item, ...]
    oldest_version: int
    uses: int


class CircularBuffer(Generic[Item]):
    """Holds the last few batches. Taking one counts as a use; a batch is removed when its uses are up or it is too
    old.
    """

    def __init__(self, batches: int, uses: int, kept: Iterable[KeptBatch[Item]] = ()) -> None:
        self._kept: deque[KeptBatch[Item]] = deque(kept, maxlen=batches)
        self._uses = uses

    @property
    def kept(self) -> tuple[KeptBatch[Item], ...]:
        """What it holds, oldest first."""
        return tuple(self._kept)

    def put(self, batch: tuple[Item, ...], oldest_version: int) -> None:
        """Add a batch that has just been used once."""
        if self._uses > 1:
            self._kept.append(KeptBatch(batch, oldest_version, 1))

    def take(self, oldest_allowed: int) -> tuple[Item, ...] | None:
        """Return the least used batch that is recent enough, or None."""
        for kept in self.kept:
            if kept.uses >= self._uses or kept.oldest_version < oldest_allowed:
                self._kept.remove(kept)
        if not self._kept:
            return None
        chosen = min(self._kept, key=lambda kept: kept.uses)
        self._count(chosen.batch, 1)
        return chosen.batch

    def give_back(self, batch: tuple[Item, ...]) -> None:
        """Take back a use: nothing was learned from the batch after all."""
        self._count(batch, -1)

    def _count(self, batch: tuple[Item, ...], uses: int) -> None:
        for place, kept in enumerate(self._kept):
            if kept.batch is batch:
                self._kept[place] = replace(kept, uses=kept.uses + uses)


@dataclass(frozen=True)
class ReplaySlice:
    """Contributions that a learner takes together, in several passes.

    `number` counts slices over the run: their chance is drawn from it. `passes` are done; the first one `prepared` what
    the later ones need. `failures` have happened since the last pass that was done.
    """

    number: int
    contributions: tuple[Contribution, ...]
    passes: int = 0
    prepared: bytes | None = None
    failures: int = 0


class Slices:
    """Slices that wait for a learner: first those whose learner failed, then new ones, then those with passes left."""

    def __init__(self, waiting: Iterable[ReplaySlice] = ()) -> None:
        self._again: deque[ReplaySlice] = deque()
        self._new: deque[ReplaySlice] = deque()
        self._begun: deque[ReplaySlice] = deque()
        for slice_ in waiting:
            self.put(slice_)

    def __len__(self) -> int:
        return len(self._again) + len(self._new) + len(self._begun)

    @property
    def waiting(self) -> tuple[ReplaySlice, ...]:
        """What it holds, in the order in which learners get it."""
        return (*self._again, *self._new, *self._begun)

    def put(self, slice_: ReplaySlice) -> None:
        """Add a slice behind those of its sort."""
        (self._again if slice_.failures else self._begun if slice_.passes else self._new).append(slice_)

    def give_back(self, slice_: ReplaySlice) -> None:
        """Add a slice that a learner had, before all others: that pass was not done."""
        self._again.appendleft(slice_)

    def take(self) -> ReplaySlice | None:
        """Remove and return the next slice, or None."""
        for queue in (self._again, self._new, self._begun):
            if queue:
                return queue.popleft()
        return None


def newest_within(
    limit_bytes: int, waiting: tuple[Contribution, ...], replay: tuple[KeptBatch[Contribution], ...]
) -> tuple[tuple[Contribution, ...], tuple[KeptBatch[Contribution], ...]]:
    """Return the newest of both that have no more bytes together; what waits comes before what was used already."""
    room = limit_bytes
    for i, contribution in reversed(list(enumerate(waiting))):
        room -= len(contribution.payload)
        if room < 0:
            return waiting[i + 1 :], ()
    for i, kept in reversed(list(enumerate(replay))):
        room -= sum(len(contribution.payload) for contribution in kept.batch)
        if room < 0:
            return waiting, replay[i + 1 :]
    return waiting, replay
