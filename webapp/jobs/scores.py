"""A job's score: one definition for every page, the API, files, the command and searches.

The *evaluated* score is what the last evaluation found: the policy without exploration, or the model on held-out data.
The *training* score is what the last round that had one showed while it explored and learned. The evaluated score leads
wherever a job is shown with one score. A job that was never evaluated is shown by its training score, with that word.
Several runs are judged by one of the two: evaluated, if each of them that has begun was evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal, NamedTuple, Protocol

from django.db.models.functions import Coalesce
from django.utils.html import format_html

from training.tasks.score import Declaration
from webapp.formatting import format_score

Basis = Literal["evaluation", "training"]
LEADING = Coalesce("evaluated_score", "training_score")
"""A job's score in a query."""


class Scored(Protocol):
    """A job, or what repeats its figures."""

    @property
    def round_no(self) -> int: ...
    @property
    def training_score(self) -> float | None: ...
    @property
    def evaluated_score(self) -> float | None: ...


class ScoredJob(Scored, Protocol):
    @property
    def declaration(self) -> Declaration: ...


class JobScore(NamedTuple):
    """A score and what it is of: None and "" before there is any."""

    value: float | None
    basis: Literal["evaluation", "training", ""]


def score_of(job: Scored) -> JobScore:
    """Return the score that a job is shown with."""
    return _score_by(job, "evaluation" if job.evaluated_score is not None else "training")


def scores_of(jobs: Iterable[Scored]) -> tuple[Basis, list[float | None]]:
    """Return what several runs are judged by, and the score of each, None where it has none."""
    jobs = list(jobs)
    basis = basis_of(jobs)
    return basis, [_score_by(job, basis).value for job in jobs]


def basis_of(jobs: Iterable[Scored]) -> Basis:
    """Return what several runs are judged by."""
    begun = [job for job in jobs if job.round_no]
    evaluated = bool(begun) and all(job.evaluated_score is not None for job in begun)
    return "evaluation" if evaluated else "training"


def mean_score(jobs: Sequence[Scored]) -> JobScore:
    """Return the mean over the runs that have a score."""
    basis, scores = scores_of(jobs)
    known = [score for score in scores if score is not None]
    return JobScore(fmean(known), basis) if known else JobScore(None, "")


def named_score(job: ScoredJob) -> str:
    """Return a job's score as HTML, with its word where it is that of training."""
    return _named(score_of(job), job.declaration)


def named_mean_score(jobs: Sequence[ScoredJob]) -> str:
    """Return the mean of several runs in the same way."""
    return _named(mean_score(jobs), jobs[0].declaration)


def score_name(name: str, basis: str) -> str:
    """Return the name of a score with its word: "evaluated return", "training loss"."""
    return f"{'training' if basis == 'training' else 'evaluated'} {name}"


def _score_by(job: Scored, basis: Basis) -> JobScore:
    value = job.evaluated_score if basis == "evaluation" else job.training_score
    return JobScore(value, basis) if value is not None else JobScore(None, "")


def _named(score: JobScore, declared: Declaration) -> str:
    words = format_score(score.value, declared.score.decimals)
    if score.basis != "training":
        return words
    return format_html(
        '<span class="score-basis secondary small" title="Not evaluated yet">training</span> {}', words
    )
