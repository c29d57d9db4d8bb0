"""The score of runs over steps, time and dollars, and when it reached a target: one definition for all pages.

An evaluation counts at the end of the round whose version it judged, with what had been spent by then. The training
score is smoothed over rounds. All curves of a page come in a fixed number of queries. They are kept until
their job has new events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from django.db.models import F, Q

from training.tasks.score import Score
from webapp.job_states import TERMINAL
from webapp.jobs.charts.figures import SCORE, SPENT, spent_picodollars
from webapp.jobs.charts.history import History
from webapp.jobs.models import Event, EventKind, Job, Round
from webapp.jobs.scores import Basis, basis_of
from webapp.money.amounts import PICODOLLARS_PER_USD

Doubles = npt.NDArray[np.float64]
ROUNDS_OF_A_RUN = 300
_WEIGHT = 0.9
_TOLERANCE = 1e-9
MOST_KEPT = 1_000
"""Curves cached in one process: about ten megabytes."""


@dataclass(frozen=True, eq=False)
class RunCurve:
    """A run's scores, with the steps, rounds, times and dollars up to each. `is_over`: it can get no further.

    A curve of evaluations has that of `training` beside it. Each is equal to itself alone, so that lines may be kept by
    the curves they are of.
    """

    basis: Basis
    steps: Doubles
    rounds: Doubles
    wall: Doubles
    time: Doubles
    usd: Doubles
    scores: Doubles
    is_over: bool = False
    training: RunCurve | None = None


class Arrival(NamedTuple):
    """Where a run was when its score first reached a target."""

    round_no: int
    steps: float
    time_s: float
    usd: float


def arrival(curve: RunCurve, target: float, score: Score) -> Arrival | None:
    """Return when the curve first reached the target; None if it did not. Rounding keeps no run from where it is."""
    toward = 1 if score.higher_is_better else -1
    there = np.flatnonzero(toward * (curve.scores - target) >= -_TOLERANCE * abs(target))
    if not len(there):
        return None
    at = int(there[0])
    return Arrival(int(curve.rounds[at]), float(curve.steps[at]), float(curve.time[at]), float(curve.usd[at]))


def curves_of(jobs: Sequence[Job]) -> dict[str, RunCurve]:
    """Return the curves by job, all of what these jobs are judged by together. They are empty before a first round."""
    basis = basis_of(jobs)
    return _chosen(jobs, {job.pk: basis for job in jobs})


def own_curves_of(jobs: Sequence[Job]) -> dict[str, RunCurve]:
    """Return the curves by job, each of what that job is shown with."""
    return _chosen(jobs, {job.pk: basis_of([job]) for job in jobs})


def evaluated_curve(history: History) -> RunCurve:
    """Return the evaluations of a job's history as a curve. Hold the history's lock."""
    position = {int(number): at for at, number in enumerate(history.columns["round"])}
    judged = [evaluation for evaluation in history.evaluations if evaluation.round_no in position]
    at = [position[evaluation.round_no] for evaluation in judged]

    def there(name: str) -> Doubles:
        column = history.columns[name]
        return np.array([column[place] for place in at], dtype=np.float64)

    return RunCurve(
        basis="evaluation",
        steps=there("steps"),
        rounds=there("round"),
        wall=there("wall_s"),
        time=there("platform_s"),
        usd=there("spent_usd"),
        scores=np.array([evaluation.mean for evaluation in judged], dtype=np.float64),
    )


def smoothed(values: Doubles) -> Doubles:
    """An exponential mean that starts unbiased, as on a job's page."""
    means, mean, mass = np.empty_like(values), 0.0, 0.0
    for at, value in enumerate(values):
        mean = _WEIGHT * mean + (1 - _WEIGHT) * value
        mass = _WEIGHT * mass + (1 - _WEIGHT)
        means[at] = mean / mass
    return means


_kept: dict[tuple[str, int], RunCurve] = {}
"""Curves of evaluations, with their training, by job and the number of its last event; the oldest are dropped first."""


def _chosen(jobs: Sequence[Job], basis: Mapping[str, Basis]) -> dict[str, RunCurve]:
    curves = {job.pk: curve for job in jobs if (curve := _kept.get((job.pk, job.last_seq))) is not None}
    unknown = [job for job in jobs if job.pk not in curves]
    if unknown:
        read = _read(unknown)
        for job in unknown:
            curves[job.pk] = _kept[job.pk, job.last_seq] = read[job.pk]
        while len(_kept) > MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
    return {
        pk: curve if basis[pk] == "evaluation" else curve.training or curve for pk, curve in curves.items()
    }


def _read(jobs: Sequence[Job]) -> dict[str, RunCurve]:
    evaluations = _evaluations([job for job in jobs if job.evaluated_score is not None])
    rows = _rounds(jobs, evaluations)
    return {job.pk: _curves(job, rows[job.pk], evaluations.get(job.pk, {})) for job in jobs}


def _evaluations(jobs: Sequence[Job]) -> dict[str, dict[int, float]]:
    """Return the scores of evaluations by job and round: those that are drawn, and each that was a new best.

    Those that a resumed run repeats are left out.
    """
    if not jobs:
        return {}
    events = Event.objects.filter(
        job__in=[job.pk for job in jobs], kind__in=(EventKind.EVALUATION, EventKind.RESUMED)
    ).order_by("job", "seq")
    by_job: dict[str, dict[int, float]] = {job.pk: {} for job in jobs}
    rows = events.values_list(
        "job", "kind", "payload__round_no", "payload__return_mean", "payload__from_round"
    )
    for pk, kind, round_no, mean, from_round in rows.iterator(chunk_size=5_000):
        known = by_job[pk]
        if kind == EventKind.RESUMED:
            by_job[pk] = {number: value for number, value in known.items() if number <= from_round}
            continue
        known.pop(round_no, None)
        if mean is not None:
            known[round_no] = mean
    return {job.pk: _thinned(by_job[job.pk], job.training_facts.score) for job in jobs}


def _thinned(scores: Mapping[int, float], score: Score) -> dict[int, float]:
    every = 1 + len(scores) // ROUNDS_OF_A_RUN
    kept, best = {}, None
    for at, (number, value) in enumerate(scores.items()):
        is_best = best is None or (value != best and score.reaches(value, best))
        if is_best or at % every == 0 or at == len(scores) - 1:
            kept[number] = value
        best = value if is_best else best
    return kept


_Row = tuple[float, float, float, float, float, float | None]


def _rounds(jobs: Sequence[Job], evaluations: Mapping[str, Mapping[int, float]]) -> dict[str, list[_Row]]:
    """Return steps, round, wall time, time, dollars and training score by job, of every n-th round of a long run, its
    last one, and those that were evaluated.
    """
    every = (F("job__round_no") + ROUNDS_OF_A_RUN) / ROUNDS_OF_A_RUN
    wanted = Q(left=0) | Q(round_no=F("job__round_no"))
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for job in jobs:
        if job.round_no >= ROUNDS_OF_A_RUN:  # of shorter runs every round is read
            alike[tuple(evaluations.get(job.pk, ()))].append(job.pk)
    for numbers, pks in alike.items():
        wanted |= Q(job_id__in=pks, round_no__in=numbers)
    rows = Round.objects.filter(job__in=[job.pk for job in jobs]).annotate(left=F("round_no") % every)
    points: dict[str, list[_Row]] = {job.pk: [] for job in jobs}
    began = {job.pk: job.started_at for job in jobs}
    values = (
        rows.filter(wanted)
        .order_by("job", "round_no")
        .values_list(
            *(
                "job",
                "payload__report__total_env_steps",
                "round_no",
                "at",
                "payload__report__started_s",
                "payload__report__total_s",
            ),
            *(*SPENT, SCORE),
        )
    )
    for pk, steps, round_no, at, started_s, total_s, booked, accrued, mean in values:
        wall_s = (at - start).total_seconds() if (start := began[pk]) else 0.0
        usd = (spent_picodollars(booked, accrued) or 0) / PICODOLLARS_PER_USD
        points[pk].append((steps, round_no, wall_s, started_s + total_s, usd, mean))
    return points


def _curves(job: Job, rows: Sequence[_Row], evaluations: Mapping[int, float]) -> RunCurve:
    over = job.observed in TERMINAL
    trained = _curve("training", ((*row[:5], row[5]) for row in rows if row[5] is not None), over)
    judged = ((*row[:5], evaluations[int(row[1])]) for row in rows if row[1] in evaluations)
    return _curve("evaluation", judged, over, trained)


def _curve(
    basis: Basis, points: Iterable[Sequence[float | None]], over: bool, training: RunCurve | None = None
) -> RunCurve:
    steps, rounds, wall, time, usd, scores = np.array(list(points), dtype=np.float64).reshape(-1, 6).T
    scores = smoothed(scores) if basis == "training" else scores
    return RunCurve(basis, steps, rounds, wall, time, usd, scores, over, training)
