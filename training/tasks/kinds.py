"""The kinds of training there are, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.tasks.reinforcement import ReinforcementLearning
from training.tasks.task import Task
from training.tasks.training import Training, TrainingFacts

TASKS: dict[str, type[Task[Any]]] = {task.kind: task for task in (ReinforcementLearning,)}


def facts_of(stored: Mapping[str, Any]) -> TrainingFacts:
    """Return the facts of a spec as it is stored. Raises ValueError if it cannot be read."""
    kind = str(stored.get("kind", ReinforcementLearning.kind))
    if kind not in TASKS:
        raise ValueError(f"no kind of training is named {kind[:40]!r}")
    return TASKS[kind].facts_of(stored)


def task_of(spec: Training) -> Task[Any]:
    """Return the task of a spec."""
    return TASKS[spec.kind](spec)
