"""The kinds of training there are, one row each."""

from __future__ import annotations

from typing import Any

from training.tasks.reinforcement import ReinforcementLearning
from training.tasks.task import Task
from training.tasks.training import Training

TASKS: dict[str, type[Task[Any]]] = {task.kind: task for task in (ReinforcementLearning,)}


def task_of(spec: Training) -> Task[Any]:
    """Return the task of a spec."""
    return TASKS[spec.kind](spec)
