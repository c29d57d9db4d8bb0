"""The figures of a comparison: each side's return, cost and time, and how certain the order is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from training.statistics.few_seeds import Doubles, Interval, bootstrap
from training.tasks.score import Score
from webapp.comparing.curves import RunCurve, drawn_by
from webapp.comparing.groups import Picked, Side, different_paths, flattened, format_value, question_of
from webapp.comparing.significance import Apart, apart, is_significantly_greater, with_width
from webapp.jobs.form.field_titles import title_at, variant_titles
from webapp.jobs.models import Job
from webapp.jobs.scores import Basis, score_name, scores_of

_DRAWS = 4_000


@dataclass(frozen=True)
class SideFigures:
    """`scores`: one a run that has any. `iqm` is an interval from two runs on. Money in picodollars.

    `costs` and `times_s`: one a run that has begun; `cost_a_run` and `time_s` are their means, None while none has.
    """

    side: Side
    scores: Doubles
    iqm: Interval | None
    costs: Doubles
    times_s: Doubles
    cost: int
    limit_a_run: int
    against: Apart | None = None
    leads: bool = False
    efficient: bool = False

    @property
    def merits(self) -> Doubles:
        """The scores, turned so that more is better."""
        return self.side.toward * self.scores

    @property
    def cost_a_run(self) -> int | None:
        return int(self.costs.mean()) if len(self.costs) else None

    @property
    def time_s(self) -> float | None:
        return float(self.times_s.mean()) if len(self.times_s) else None

    @property
    def interval(self) -> Interval | None:
        """The interval of the interquartile mean; None if the runs give it no width."""
        return None if self.iqm is None else with_width(self.iqm)

    @property
    def more_cost(self) -> int | None:
        """About what this side's further seeds cost that would separate it from the leader."""
        if self.against is None or not self.against.more or self.cost_a_run is None:
            return None
        return self.against.more * self.cost_a_run


@dataclass(frozen=True)
class JobComparison:
    """What the sides are judged by (webapp/jobs/scores.py), and what the chart draws. Sides in the address's order."""

    sides: tuple[SideFigures, ...]
    scored_by: Basis
    drawn_by: Basis
    leader: SideFigures | None

    @property
    def score(self) -> Score:
        """What the sides are judged by."""
        return self.sides[0].side.score

    @property
    def named(self) -> str:
        """The name of the sides' score with its word: "Evaluated return"."""
        return score_name(self.score.name, self.scored_by).capitalize()

    @property
    def running(self) -> int:
        return sum(figures.side.running for figures in self.sides)


def compared(picked: Picked, curves: dict[str, RunCurve]) -> JobComparison:
    """The figures of all sides. Each is tested against the best one, if both have scores."""
    basis, scores = scores_of(picked.jobs)
    by_job = {job.pk: score for job, score in zip(picked.jobs, scores, strict=True)}
    sides = [_figures(side, by_job) for side in picked.sides]
    known = [figures for figures in sides if figures.iqm is not None]
    leader = max(known, key=lambda one: one.side.toward * one.iqm.value if one.iqm else 0.0, default=None)
    efficient = {id(figures) for figures in ahead_of_each(known)}
    marked = tuple(_held_against(figures, leader, id(figures) in efficient) for figures in sides)
    lead = next((figures for figures in marked if figures.leads), None)
    return JobComparison(marked, basis, drawn_by(curves), lead)


def _figures(side: Side, by_job: Mapping[str, float | None]) -> SideFigures:
    scores = np.array([score for job in side.jobs if (score := by_job[job.pk]) is not None])
    costs = [_cost(job) for job in side.jobs]
    begun = [
        (cost, job.platform_s) for cost, job in zip(costs, side.jobs, strict=True) if cost or job.platform_s
    ]
    return SideFigures(
        side=side,
        scores=scores,
        iqm=bootstrap(scores, repetitions=_DRAWS) if len(scores) else None,
        costs=np.array([cost for cost, _ in begun], dtype=np.float64),
        times_s=np.array([time_s for _, time_s in begun if time_s], dtype=np.float64),
        cost=sum(costs),
        limit_a_run=max(job.account.limit_picodollars for job in side.jobs),
    )


def _cost(job: Job) -> int:
    account = job.account
    return int(account.spent_picodollars + account.overrun_picodollars)


def _held_against(figures: SideFigures, leader: SideFigures | None, efficient: bool) -> SideFigures:
    if leader is None or figures.iqm is None:
        return figures
    against = None if figures is leader else apart(leader.merits, figures.merits)
    return replace(figures, against=against, leads=figures is leader, efficient=efficient)


def ahead_of_each(sides: Sequence[SideFigures], by: Sequence[str] = ("usd", "time")) -> list[SideFigures]:
    """The sides that are significantly better than each other side in return, dollars or time.

    By figures alone one of two sides nearly always is, so it counts only if the seeds make the order significant.
    """
    return [
        figures
        for figures in sides
        if len(sides) > 1 and all(_is_ahead(figures, other, by) for other in sides if other is not figures)
    ]


def _is_ahead(figures: SideFigures, other: SideFigures, by: Sequence[str]) -> bool:
    if is_significantly_greater(figures.merits, other.merits):
        return True
    if figures.side.running or other.side.running:  # what it comes to is not known yet
        return False
    return ("usd" in by and is_significantly_greater(other.costs, figures.costs)) or (
        "time" in by and is_significantly_greater(other.times_s, figures.times_s)
    )


@dataclass(frozen=True)
class SpecDifference:
    """A field of the specs whose value is not the same on all sides."""

    path: str
    values: tuple[str, ...]
    title: str = ""
    """The form's title of the field."""
    shown: tuple[str, ...] = ()
    """The values as the form has them: of a choice the titles of its variants."""
    on_all: bool = True
    """Whether each side has the field. Those of one algorithm alone say little beside another one."""


def differences(sides: Sequence[Side]) -> list[SpecDifference]:
    """The fields in which the sides' specs differ. Limits count; names, tags and seeds do not."""
    specs = [side.jobs[0].spec for side in sides]
    questions: list[dict[str, Any]] = [
        {**question_of(spec), "budget_usd": flattened(spec)["budget_usd"]} for spec in specs
    ]
    return [_difference(path, questions, specs) for path in different_paths(questions)]


def _difference(
    path: str, questions: Sequence[Mapping[str, Any]], specs: Sequence[Mapping[str, Any]]
) -> SpecDifference:
    values = tuple(format_value(question[path]) if path in question else "–" for question in questions)
    having = [spec for spec, question in zip(specs, questions, strict=True) if path in question]
    titles = variant_titles(path)
    shown = tuple(titles.get(value, value) for value in values)
    return SpecDifference(path, values, title_at(path, having), shown, len(having) == len(questions))
