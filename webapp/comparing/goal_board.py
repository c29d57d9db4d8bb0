"""A project's board: each algorithm, scaling policy and cloud by what it took to get to a task's reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, inf
from typing import NamedTuple

from django.db.models import Count

from webapp.accounts.models import Project
from webapp.comparing.goal_results import references
from webapp.comparing.models import GoalResult
from webapp.jobs.form.field_titles import variant_titles


class BoardSetting(NamedTuple):
    """What the runs of a row share."""

    algorithm: str
    policy: str
    cloud: str
    money: str


@dataclass(frozen=True)
class BoardRow:
    """`reached` of `runs` got to the goal, by their evaluations; `trained` of the runs were never evaluated, so that
    their training return counts. Medians count the others as never; None where fewer than half got there.

    `job` is the id of the run that got there for least, else of any.
    """

    setting: BoardSetting
    runs: int
    reached: int
    cost_picodollars: int | None
    time_s: float | None
    job: str
    trained: int = 0

    @property
    def algorithm(self) -> str:
        return _title("training.algorithm.kind", self.setting.algorithm)

    @property
    def policy(self) -> str:
        return _title("training.scaling.kind", self.setting.policy)

    @property
    def cloud(self) -> str:
        kind, _, profile = self.setting.cloud.partition(":")
        return _title("platform.kind", kind) + (f", {profile}" if profile else "")

    @property
    def share(self) -> float:
        return self.reached / self.runs


@dataclass(frozen=True)
class Board:
    """The rows of a subject, cheapest first; those without a median last."""

    subject: str
    goal: float
    rows: tuple[BoardRow, ...]


def subjects_of(project: Project) -> dict[str, int]:
    """Return how many finished jobs the project has by subject, those with most first."""
    rows = GoalResult.objects.filter(project=project).values_list("subject").annotate(runs=Count("pk"))
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


def board_of(project: Project, subject: str) -> Board | None:
    """Return the project's board of a subject, in one query; None for one without a reference."""
    goal = references().get(subject)
    if goal is None:
        return None
    results = GoalResult.objects.filter(project=project, subject=subject, goal=goal).values_list(
        "algorithm", "policy", "cloud", "money", "cost_picodollars", "time_s", "job_id", "evaluated"
    )
    runs: dict[BoardSetting, list[_Run]] = defaultdict(list)
    for row in results.iterator(chunk_size=5_000):
        algorithm, policy, cloud, money, cost, time_s, job_id, evaluated = row
        runs[BoardSetting(algorithm, policy, cloud, money)].append(_Run(cost, time_s, job_id, evaluated))
    rows = [_row(setting, found) for setting, found in runs.items()]
    rows.sort(key=lambda row: (_last_if_none(row.cost_picodollars), -row.share, row.setting))
    return Board(subject, goal, tuple(rows))


class _Run(NamedTuple):
    cost: int | None
    time_s: float | None
    job_id: str
    evaluated: bool


def _row(setting: BoardSetting, runs: Sequence[_Run]) -> BoardRow:
    costs = sorted(run.cost for run in runs if run.cost is not None)
    times = sorted(run.time_s for run in runs if run.time_s is not None)
    half = ceil(len(runs) / 2)
    return BoardRow(
        setting,
        runs=len(runs),
        reached=len(costs),
        cost_picodollars=costs[half - 1] if len(costs) >= half else None,
        time_s=times[half - 1] if len(times) >= half else None,
        job=min(runs, key=lambda run: _last_if_none(run.cost)).job_id,
        trained=sum(not run.evaluated for run in runs),
    )


def _last_if_none(value: float | None) -> float:
    return inf if value is None else value


@cache
def _title(path: str, tag: str) -> str:
    return variant_titles(path).get(tag, tag)
