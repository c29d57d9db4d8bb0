"""The figures of a comparison: each side's return, cost and time, and how sure the order is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webapp.comparing.curves import RunCurve
from webapp.comparing.sides import Picked, Side, different_paths, flattened, question_of, told_value
from webapp.comparing.telling_apart import Apart, apart
from webapp.jobs.models import Job
from webapp.papers.statistics import Doubles, Interval, bootstrap

_DRAWS = 4_000


@dataclass(frozen=True)
class SideFigures:
    """`scores`: one a run that has any. `iqm` has an interval from two runs on. Money in picodollars."""

    side: Side
    scores: Doubles
    iqm: Interval | None
    cost: int
    cost_a_run: int
    limit_a_run: int
    time_s: float
    against: Apart | None = None
    leads: bool = False
    efficient: bool = False

    @property
    def more_cost(self) -> int | None:
        """What the seeds that would tell this side from the leader come to on this side, about."""
        if self.against is None or not self.against.more:
            return None
        return self.against.more * self.cost_a_run


@dataclass(frozen=True)
class Comparison:
    """`scored_by`: "evaluation" where every run has been evaluated, else "training". Sides in the address's order."""

    sides: tuple[SideFigures, ...]
    scored_by: str
    leader: SideFigures | None

    @property
    def running(self) -> int:
        return sum(one.side.running for one in self.sides)


def compared(picked: Picked, curves: dict[str, RunCurve]) -> Comparison:
    """The figures of all sides; each but the best is held against the best, where both have scores."""
    started = [job for job in picked.jobs if len(curves[job.pk].smoothed)]
    evaluated = bool(started) and all(job.evaluation_return_mean is not None for job in started)
    found = [_figures(side, curves, evaluated) for side in picked.sides]
    known = [one for one in found if one.iqm is not None]
    leader = max(known, key=lambda one: one.iqm.value if one.iqm else 0.0, default=None)
    efficient = {id(one) for one in known if not any(_dominates(other, one) for other in known)}
    marked = tuple(_held_against(one, leader, id(one) in efficient) for one in found)
    lead = next((one for one in marked if one.leads), None)
    return Comparison(marked, "evaluation" if evaluated else "training", lead)


def _figures(side: Side, curves: dict[str, RunCurve], evaluated: bool) -> SideFigures:
    scores = np.array([score for job in side.jobs if (score := _score(job, curves, evaluated)) is not None])
    costs = [_cost(job) for job in side.jobs]
    iqm = bootstrap(scores, repetitions=_DRAWS) if len(scores) else None
    return SideFigures(
        side=side,
        scores=scores,
        iqm=iqm,
        cost=sum(costs),
        cost_a_run=sum(costs) // len(costs),
        limit_a_run=max(job.account.limit_picodollars for job in side.jobs),
        time_s=float(np.mean([job.platform_s for job in side.jobs])),
    )


def _score(job: Job, curves: dict[str, RunCurve], evaluated: bool) -> float | None:
    curve = curves[job.pk].smoothed
    if not len(curve):
        return None
    return job.evaluation_return_mean if evaluated else float(curve[-1])


def _cost(job: Job) -> int:
    account = job.account
    return int(account.spent_picodollars + account.overrun_picodollars)


def _held_against(one: SideFigures, leader: SideFigures | None, efficient: bool) -> SideFigures:
    if leader is None or one.iqm is None:
        return one
    against = None if one is leader else apart(leader.scores, one.scores)
    return replace(one, against=against, leads=one is leader, efficient=efficient)


def _dominates(one: SideFigures, other: SideFigures) -> bool:
    """Better in one of return, dollars and time, and no worse in the other two."""
    if one.iqm is None or other.iqm is None:
        return False
    ours = (one.iqm.value, -one.cost_a_run, -one.time_s)
    theirs = (other.iqm.value, -other.cost_a_run, -other.time_s)
    return ours != theirs and all(a >= b for a, b in zip(ours, theirs, strict=True))


@dataclass(frozen=True)
class Difference:
    """A field of the specs whose value is not the same on all sides."""

    path: str
    values: tuple[str, ...]


def differences(sides: Sequence[Side]) -> list[Difference]:
    """Where the sides' specs differ; names, tags and seeds are no differences, what may be spent is one."""
    specs = [side.jobs[0].spec for side in sides]
    asked: list[dict[str, Any]] = [
        {**question_of(spec), "budget_usd": flattened(spec)["budget_usd"]} for spec in specs
    ]
    return [
        Difference(path, tuple(told_value(one[path]) if path in one else "–" for one in asked))
        for path in different_paths(asked)
    ]
