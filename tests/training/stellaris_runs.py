"""Runs of the staleness-aware loop: its specs, orders of answers, and a platform that records what happened."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.training.inline_platform import InlinePlatform
from training.messages import Call, Outcome

QUICK: dict[str, Any] = {
    "kind": "ppo",
    "epochs": 3,
    "learning_rate_decay": False,
    "normalise_observations": True,
    "normalise_rewards": True,
}


def loop(**changes: Any) -> dict[str, Any]:
    return {"kind": "staleness_aware", "learners": 3, "trajectories_per_gradient": 1, **changes}


def reports(events: list[Any]) -> list[Any]:
    return [event.report for event in events if event.kind == "round"]


def at_random(seed: int) -> Callable[[int], int]:
    rng = random.Random(seed)
    return lambda waiting: rng.randrange(waiting)


class Recording(InlinePlatform):
    """Keeps what was submitted and answered, in order."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.happened: list[tuple[str, Call, Outcome | None]] = []
        self._calls: dict[str, Call] = {}

    def submit(self, call: Call) -> None:
        self._calls[call.id] = call
        self.happened.append(("sent", call, None))
        super().submit(call)

    def next(self, timeout_s: float) -> Outcome | None:
        outcome = super().next(timeout_s)
        if outcome is not None:
            self.happened.append(("landed", self._calls[outcome.call_id], outcome))
        return outcome


def first_of(kinds: set[str], platform: InlinePlatform) -> Callable[[int], int]:
    """An order in which calls of these kinds answer before all others."""
    return lambda waiting: next((i for i, call in enumerate(platform._waiting) if call.kind in kinds), 0)
