"""What the emulated subscription bills."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


@dataclass
class GroupSpan:
    """One group, from the start of its image's pull to its end, on this machine's monotonic clock."""

    name: str
    cores: int
    memory_mb: int
    from_s: float
    to_s: float | None = None
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def billed_s(self) -> int:
        """Started seconds."""
        end_s = time.monotonic() if self.to_s is None else self.to_s
        return math.ceil(round(end_s - self.from_s, 6))

    @property
    def over(self) -> bool:
        return self.to_s is not None


@dataclass
class GroupMeter:
    """Every group that was ever started. A second start of a group is a new span."""

    spans: list[GroupSpan] = field(default_factory=list)
