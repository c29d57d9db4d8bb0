"""What every body takes and returns, on any platform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from training.data.store import DataStore
from training.engine.reports import Usage


def _no_store() -> DataStore:
    raise LookupError("this process holds no data")


@dataclass(frozen=True)
class Result:
    """What a body returns. `usage` holds the work and, for a rollout, how its time divides; the platform adds all
    other times.
    """

    payload: bytes
    slot_state: bytes | None
    usage: Usage


def required_weights(weights: bytes | None) -> bytes:
    """Return the weights, for bodies that cannot do without. Raises ValueError if there are none."""
    if weights is None:
        raise ValueError("this call needs weights but has none")
    return weights


@dataclass
class WarmCache:
    """What a process keeps between calls to save time, and how many `cores` it has. Results depend on neither.

    `store` returns where the platform holds the shards that calls name.
    """

    cores: int = 1
    slots: dict[str, dict[str, Any]] = field(default_factory=dict)  # by kind, then by the state's hash
    evaluations: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, Any] = field(default_factory=dict)
    store: Callable[[], DataStore] = _no_store
