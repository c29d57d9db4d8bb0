"""A search over the ranges of the scheduler's hyperparameters: each setting is a training without a version.

A search continues where it stopped: settings already trained under its name in the project are not trained again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from training.engine.seeds import derive
from webapp.accounts.models import Project, User
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.schedulers import persist, services
from webapp.schedulers.models import SchedulerTraining, TrainingState
from webapp.schedulers.request import TrainingRequest

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
class SearchRow:
    """One setting and its result: the mean score of the last episodes, of real ones if there were any."""

    training_id: int
    setting: Setting
    state: str
    score: float | None
    wall_s: float


def grid() -> list[dict[str, float]]:
    """Every combination, in one order."""
    return [dict(zip(RANGES, values, strict=True)) for values in itertools.product(*RANGES.values())]


def draw(how_many: int, seed: int) -> list[dict[str, float]]:
    """Random different combinations, the same for the same seed. A longer draw begins with the shorter one."""
    all_of_them = grid()
    order = np.random.Generator(np.random.PCG64(derive(seed, "search"))).permutation(len(all_of_them))
    return [all_of_them[at] for at in order[:how_many]]


def trainings(
    project: Project, user: User, request: TrainingRequest, name: str, settings: Sequence[Setting]
) -> Iterator[SchedulerTraining]:
    """The unfinished training of each setting, created if there is none yet."""
    if request.scheduling.kind != "minionsrl":
        words = "a search tries settings of MinionsRL's agent; name a workload of reinforcement learning"
        raise services.TrainingRefused([SpecProblem("workload", f"Workload (workload): {words}.")])
    known = {_setting_of(one): one for one in SchedulerTraining.objects.filter(project=project, search=name)}
    for setting in settings:
        training = known.get(tuple(setting.items()))
        if training is None:
            scheduling = request.scheduling.model_copy(update=dict(setting))
            named = request.model_copy(update={"name": name, "scheduling": scheduling})
            training = services.request_training(
                project=project,
                user=user,
                request=TrainingRequest.model_validate(named.model_dump()),
                search=name,
                tell_worker=False,
            )
        if training.state in (TrainingState.QUEUED, TrainingState.RUNNING):
            yield training


def rows(project: Project, name: str) -> list[SearchRow]:
    """The rows of the search, the best score first."""
    listed = [_row(training) for training in SchedulerTraining.objects.filter(project=project, search=name)]
    return sorted(listed, key=lambda row: (row.score is None, -(row.score or 0.0), row.training_id))


def _row(training: SchedulerTraining) -> SearchRow:
    facts = persist.facts(training)
    judged = facts["real"] or facts["rehearsed"]
    score = judged["score"] if judged and training.state == TrainingState.DONE else None
    return SearchRow(training.pk, dict(_setting_of(training)), training.state, score, facts["wall_s"])


def _setting_of(training: SchedulerTraining) -> tuple[tuple[str, float], ...]:
    return tuple((name, training.spec[name]) for name in RANGES)
