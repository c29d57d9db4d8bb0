"""A step of a set-up or a removal: what was found or done, and what to do if it did not work."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

StepState = Literal["done", "made", "gone", "missing"]
"""Existed already; created or changed now; no longer exists; could not be done."""


@dataclass(frozen=True)
class SetUpStep:
    name: str
    state: StepState
    words: str
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
