"""What every body takes and gives, whichever platform runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from training.reports import Usage


@dataclass(frozen=True)
class Result:
    """What a body gives back. `usage` holds the work, and of times only how a rollout's divide: others are the
    platform's to fill in."""

    payload: bytes
    env_state: bytes | None
    usage: Usage


@dataclass
class Warmth:
    """What a process keeps between calls to save time. A cache only: results never depend on it."""

    environments: dict[str, dict[str, Any]] = field(default_factory=dict)  # by kind, then by the state's hash
    evaluations: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, Any] = field(default_factory=dict)
