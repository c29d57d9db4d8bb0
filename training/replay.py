"""A circular buffer of old batches that may be learned from again, each a limited number of times."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass
class _Kept(Generic[Item]):
    batch: tuple[Item, ...]
    oldest_version: int
    uses: int


class CircularBuffer(Generic[Item]):
    """Holds the last few batches. Taking one counts as a use; a batch is removed when its uses are up or it is too
    old.
    """

    def __init__(self, batches: int, uses: int) -> None:
        self._kept: deque[_Kept[Item]] = deque(maxlen=batches)
        self._uses = uses

    def put(self, batch: tuple[Item, ...], oldest_version: int) -> None:
        """Add a batch that has just been used once."""
        if self._uses > 1:
            self._kept.append(_Kept(batch, oldest_version, 1))

    def take(self, oldest_allowed: int) -> tuple[Item, ...] | None:
        """Return the least used batch that is recent enough, or None."""
        for kept in [
            kept for kept in self._kept if kept.uses >= self._uses or kept.oldest_version < oldest_allowed
        ]:
            self._kept.remove(kept)
        if not self._kept:
            return None
        chosen = min(self._kept, key=lambda kept: kept.uses)
        chosen.uses += 1
        return chosen.batch
