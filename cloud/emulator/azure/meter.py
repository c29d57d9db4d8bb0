"""The bill of the emulated subscription, computed without any ledger: tests compare ledgers with it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from cloud.billing.price_book import PriceBook
from cloud.billing.price_parts import container_parts
from cloud.pricing import lines_of, total

_NS = 10**9


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

    def picodollars(self, book: PriceBook, region: str) -> int:
        return total(lines_of(container_parts(book, region, self.cores, self.memory_mb), self.billed_s * _NS))


@dataclass
class Meter:
    """Every group that was ever started. A second start of a group is a new span."""

    spans: list[GroupSpan] = field(default_factory=list)

    def of(self, name: str) -> list[GroupSpan]:
        return [span for span in self.spans if span.name == name]

    def picodollars_of(self, name: str, book: PriceBook, region: str) -> int:
        return sum(span.picodollars(book, region) for span in self.of(name))

    def picodollars(self, book: PriceBook, region: str) -> int:
        return sum(span.picodollars(book, region) for span in self.spans)
