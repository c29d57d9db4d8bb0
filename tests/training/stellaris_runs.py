"""Runs of the staleness-aware loop: its specs, orders of answers, and a platform that records what happened."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from training.engine.checkpoints import Progress
from training.engine.messages import Call, Outcome
from training.engine.ports import Control
from training.spec import TrainingSpec

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


def paused_with_gradients(spec: TrainingSpec) -> bytes:
    """Return a checkpoint of a run that was paused while gradients waited and slices had passes left."""
    for looks in range(10, 100):
        control = iter(["run"] * looks + ["paused"] * 1000)
        store = Forgetful()
        events_of(
            spec,
            Recording(order=at_random(looks)),
            checkpoints=store,
            control=lambda control=control: Control(desired=next(control)),
        )
        for data in store.saved.values():
            unfinished = Progress.decode(data, spec).unfinished
            if unfinished.gradients and unfinished.slices:
                return data
    raise AssertionError("no pause came while gradients waited")
