"""The kinds of training there are: a row of `TASKS` each, and the type of their specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from training.spec import TrainingSpec
from training.tasks.reinforcement import ReinforcementLearning
from training.tasks.score import Declaration, Score
from training.tasks.supervised import SupervisedLearning
from training.tasks.supervised_spec import Supervised
from training.tasks.task import Task
from training.tasks.training import Training, TrainingFacts

AnyTraining = Annotated[
    Annotated[TrainingSpec, Tag("reinforcement")] | Annotated[Supervised, Tag("supervised")],
    Discriminator(lambda spec: kind_of(spec) if isinstance(spec, Mapping | Training) else None),
]
"""The spec of any kind of training, distinguished by `kind_of`."""
TASKS: dict[str, type[Task[Any]]] = {task.kind: task for task in (ReinforcementLearning, SupervisedLearning)}


def facts_of(stored: Mapping[str, Any]) -> TrainingFacts:
    """Return the facts of a spec as it is stored. Raises ValueError if it cannot be read."""
    return _task_class(stored).facts_of(stored)


def score_of(stored: Mapping[str, Any]) -> Score:
    """Return what the numbers of a stored report or evaluation are the score of."""
    score: Score = _task_class({"kind": stored.get("training", ReinforcementLearning.kind)}).spec_model.score
    return score


def declaration_of(kind: str | None) -> Declaration:
    """Return what a stored kind of training declares. None: the kind of specs that do not name theirs."""
    declared: Declaration = _task_class({"kind": kind or ReinforcementLearning.kind}).spec_model.declare()
    return declared


def read_training(stored: Mapping[str, Any]) -> AnyTraining:
    """Return the spec that is stored. Raises ValueError, as pydantic does, if it cannot be read."""
    spec: AnyTraining = _task_class(stored).spec_model.model_validate(stored)
    return spec


def kind_of(spec: Any) -> str:
    """Return the kind of a spec or of its document. Documents could leave it out when there was one kind."""
    kind = spec.get("kind", ReinforcementLearning.kind) if isinstance(spec, Mapping) else spec.kind
    return str(kind)


def _task_class(stored: Mapping[str, Any]) -> type[Task[Any]]:
    kind = kind_of(stored)
    if kind not in TASKS:
        raise ValueError(f"no kind of training is named {kind[:40]!r}")
    return TASKS[kind]


def task_of(spec: Training) -> Task[Any]:
    """Return the task of a spec."""
    return TASKS[spec.kind](spec)
