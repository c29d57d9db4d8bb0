"""What every body takes and returns, on any platform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from training.reports import Usage


@dataclass(frozen=True)
class Result:
    """What a body returns. `usage` holds the work and, for a rollout, how its time divides; the platform adds all
    other times.
    """

    payload: bytes
    env_state: bytes | None
    usage: Usage


@dataclass
class WarmCache:
    """What a process keeps between calls to save time, and how many `cores` it has. Results depend on neither."""

    cores: int = 1
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)  # by kind, then by the state's hash
    evaluations: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, Any] = field(default_factory=dict)
