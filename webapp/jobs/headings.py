"""What pages that show several jobs head their figures with, by what the kinds of training declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F

from training.tasks.kinds import declaration_of
from webapp.jobs.models import Job

TRAINING_KIND = F("spec__training__kind")
"""For queries that leave the spec out: `annotate(training_kind=TRAINING_KIND)`."""


@dataclass(frozen=True)
class Headings:
    """`worst` heads the least return or the most loss."""

    score: str
    worst: str
    progress: str
    decimals: int


def headings_of(jobs: Iterable[Job]) -> Headings:
    """Return the words of the jobs' kind of training; words for any score and progress if there are several."""
    declared = {job.declaration for job in jobs} or {declaration_of(None)}
    names = {one.score.name.capitalize() for one in declared}
    units = {one.progress_unit.capitalize() for one in declared}
    worst = {"Least" if one.score.higher_is_better else "Most" for one in declared}
    return Headings(
        score=names.pop() if len(names) == 1 else "Score",
        worst=worst.pop() if len(worst) == 1 else "Worst",
        progress=units.pop() if len(units) == 1 else "Progress",
        decimals=max(one.score.decimals for one in declared),
    )
