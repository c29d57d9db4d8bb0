"""How far a test is: its pairs with their scores, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from training.statistics.sequential import Answer, compare_pairs, next_look
from training.tasks.score import Score
from webapp.comparing.abtests.models import ABTest, Pair
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.models import Job
from webapp.jobs.reasons import stopped_by_budget


@dataclass(frozen=True)
class PairScores:
    """One pair; a score is None until its run has succeeded."""

    number: int
    seed: int
    a: Job
    b: Job
    score_a: float | None
    score_b: float | None
    toward: int

    @property
    def difference(self) -> float | None:
        """B minus A, turned so that more is better."""
        if self.score_a is None or self.score_b is None:
            return None
        return self.toward * (self.score_b - self.score_a)

    @property
    def jobs(self) -> tuple[Job, Job]:
        return self.a, self.b


@dataclass(frozen=True)
class PairResults:
    """The pairs in the order of their seeds, and the score that they are judged by."""

    most: int
    pairs: tuple[PairScores, ...]
    score: Score | None

    @property
    def jobs(self) -> list[Job]:
        return [job for pair in self.pairs for job in pair.jobs]

    @property
    def differences(self) -> list[float]:
        """Those of the first pairs that have ended: a pair that ended before an earlier one does not count yet."""
        gaps: list[float] = []
        for pair in self.pairs:
            if pair.difference is None:
                break
            gaps.append(pair.difference)
        return gaps

    @property
    def answer(self) -> Answer:
        return compare_pairs(self.differences, self.most)

    @property
    def next_look(self) -> int:
        """The number of pairs at the next look."""
        return next_look(len(self.differences), self.most)

    def mean_difference(self, pairs: int) -> float | None:
        """The mean difference of the first pairs, in the score's own direction."""
        if not self.score or not pairs:
            return None
        toward = 1 if self.score.higher_is_better else -1
        return toward * fmean(self.differences[:pairs])

    @property
    def failed(self) -> Job | None:
        """A run that ended without a result."""
        return next((job for job in self.jobs if job.observed in (Observed.FAILED, Observed.CANCELLED)), None)

    @property
    def active(self) -> list[Job]:
        return [job for job in self.jobs if job.observed in ACTIVE]

    @property
    def out_of_money(self) -> list[Job]:
        return [job for job in self.jobs if stopped_by_budget(job)]


def results_of(test: ABTest) -> PairResults:
    """Return how far the test is."""
    return results_of_tests([test])[test.pk]


def results_of_tests(tests: Sequence[ABTest]) -> dict[int, PairResults]:
    """Return how far each test is, in a constant number of queries."""
    pairs = Pair.objects.filter(test__in=[test.pk for test in tests])
    rows = pairs.select_related("a__account", "b__account").prefetch_related(
        "a__account__budgets", "b__account__budgets"
    )
    by_test: dict[int, list[Pair]] = {test.pk: [] for test in tests}
    for pair in rows.defer("a__summary", "b__summary", "a__note", "b__note"):
        by_test[pair.test_id].append(pair)
    return {test.pk: _results(test, by_test[test.pk]) for test in tests}


def _results(test: ABTest, rows: Sequence[Pair]) -> PairResults:
    score = rows[0].a.training_facts.score if rows else None
    toward = -1 if score is not None and not score.higher_is_better else 1
    pairs = tuple(
        PairScores(
            pair.number,
            test.first_seed + pair.number - 1,
            pair.a,
            pair.b,
            _score(test, pair.a),
            _score(test, pair.b),
            toward,
        )
        for pair in rows
    )
    return PairResults(test.most_pairs, pairs, score)


def _score(test: ABTest, job: Job) -> float | None:
    if job.observed != Observed.SUCCEEDED:
        return None
    return job.evaluated_score if test.evaluated else job.training_score


def without_score(results: PairResults) -> Job | None:
    """Return a run that succeeded without a score, so that it never will have one."""
    for pair in results.pairs:
        for job, score in ((pair.a, pair.score_a), (pair.b, pair.score_b)):
            if job.observed == Observed.SUCCEEDED and score is None:
                return job
    return None
