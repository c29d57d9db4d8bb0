"""A search over the ranges of the scheduler's hyperparameters: each setting is a training without a version.

A search goes on where it was: settings that have been trained under its name in the project are not trained again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from training.seeds import derive
from webapp.schedulers import persist, services
from webapp.schedulers.models import SchedulerTraining, TrainingState
from webapp.schedulers.request import Asked

Setting = Mapping[str, float]

RANGES: Mapping[str, Sequence[float]] = {
    "learning_rate": (0.001, 0.005, 0.01),
    "minibatch_size": (1, 2, 4),
    "clip": (0.1, 0.2, 0.3),
    "entropy_coefficient": (0.005, 0.01, 0.015),
    "value_coefficient": (0.1, 0.3, 0.5, 0.7),
}
"""Those of the paper; the KL penalty that it also varies has coefficient 0 there, so its target changes nothing."""


@dataclass(frozen=True)
class Row:
    """One setting and what came of it: the mean score of the last episodes, the real ones if there were any."""

    training_id: int
    setting: Setting
    state: str
    score: float | None
    wall_s: float


def grid() -> list[dict[str, float]]:
    """Every combination, in one order."""
    return [dict(zip(RANGES, values, strict=True)) for values in itertools.product(*RANGES.values())]


def drawn(how_many: int, seed: int) -> list[dict[str, float]]:
    """Different combinations by chance, the same ones for the same seed; more of them begin with the fewer."""
    all_of_them = grid()
    order = np.random.Generator(np.random.PCG64(derive(seed, "search"))).permutation(len(all_of_them))
    return [all_of_them[at] for at in order[:how_many]]


def trainings(
    project: Any, user: Any, asked: Asked, name: str, settings: Sequence[Setting]
) -> Iterator[SchedulerTraining]:
    """One for each setting, made where there is none yet; those that are over are left out."""
    known = {_setting_of(one): one for one in SchedulerTraining.objects.filter(project=project, search=name)}
    for setting in settings:
        found = known.get(tuple(setting.items()))
        if found is None:
            scheduling = asked.scheduling.model_copy(update=dict(setting))
            wanted = asked.model_copy(update={"name": name, "scheduling": scheduling})
            found = services.ask_for_training(
                project=project,
                user=user,
                asked=Asked.model_validate(wanted.model_dump()),
                search=name,
                tell_worker=False,
            )
        if found.state in (TrainingState.QUEUED, TrainingState.RUNNING):
            yield found


def rows(project: Any, name: str) -> list[Row]:
    """What is known of the search, the best score first."""
    found = [_row(one) for one in SchedulerTraining.objects.filter(project=project, search=name)]
    return sorted(found, key=lambda row: (row.score is None, -(row.score or 0.0), row.training_id))


def _row(training: SchedulerTraining) -> Row:
    facts = persist.facts(training)
    judged = facts["real"] or facts["rehearsed"]
    score = judged["score"] if judged and training.state == TrainingState.DONE else None
    return Row(training.pk, dict(_setting_of(training)), training.state, score, facts["wall_s"])


def _setting_of(training: SchedulerTraining) -> tuple[tuple[str, float], ...]:
    return tuple((name, training.spec[name]) for name in RANGES)
