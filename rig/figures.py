"""Measured figures and what they may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class NotSetUp(Exception):
    """Something that a benchmark needs is not installed; the message says what to do."""


@dataclass(frozen=True)
class Figure:
    """A measured figure and its bound, if any: the most or the least it may be. `data` is where it comes from."""

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    data: Mapping[str, Any] | None = None

    @property
    def holds(self) -> bool:
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )

    @property
    def limit(self) -> str:
        """The promise in words; empty where there is none."""
        promises = (("at most", self.at_most), ("at least", self.at_least))
        return ", ".join(f"{words} {limit:g}" for words, limit in promises if limit is not None)

    def as_dict(self) -> dict[str, Any]:
        known = {
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "at_most": self.at_most,
            "at_least": self.at_least,
            "holds": self.holds,
        }
        return known if self.data is None else {**known, "data": dict(self.data)}
