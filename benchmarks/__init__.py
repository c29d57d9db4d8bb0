"""The figures Starling promises, measured. `manage.py bench` runs all; `manage.py bench startup` those it names.

A benchmark is one file here with a function `measure() -> Iterator[Figure]`; it is found by being there.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured figure, and the most it may be (None: only told)."""

    what: str
    value: float
    unit: str
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        return self.at_most is None or self.value <= self.at_most

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}
