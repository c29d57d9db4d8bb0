"""What a round of learners that compute gradients showed: how late they were, what they waited for, what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from training.engine.codec import Document
from training.engine.reports import GradientsReport
from training.loops.aggregation import Release

_NS = 10**9


class Occupancy:
    """Sums up a round as it goes. `look` adds the time since the last look, with the state that held meanwhile."""

    def __init__(self, learners: int, now_s: float) -> None:
        self._learners = learners
        self._why = ""
        self.begin(now_s)

    def begin(self, now_s: float) -> None:
        """Begin a round now."""
        self._began_s = now_s
        # Whole nanoseconds add up to the last digit, in whatever pieces.
        self._looked_ns = round(now_s * _NS)
        self._learner_ns = self._actor_ns = self._starved_ns = self._learning_ns = self._queued_ns = 0
        self._staleness: list[float] = []
        self._released: Counter[str] = Counter()
        self._held = 0
        self._steps: list[Document] = []
        self._dropped: Counter[str] = Counter()
        self._wasted_picodollars = 0

    def look(
        self, now_s: float, *, learners: int, actors: int, queued: int, starved: int, learning: bool
    ) -> None:
        """Count the time since the last look: so many learners and actors in flight, gradients in the queue, learners
        without data, and whether anything learned.
        """
        now_ns = round(now_s * _NS)
        for_ns = max(0, now_ns - self._looked_ns)
        self._looked_ns = now_ns
        self._learner_ns += learners * for_ns
        self._actor_ns += actors * for_ns
        self._queued_ns += queued * for_ns
        self._starved_ns += starved * for_ns
        self._learning_ns += for_ns if learning else 0

    def release(self, release: Release, held: int) -> None:
        """Count a release, of whose gradients so many had been held before."""
        self._released[release.reason] += len(release.gradients)
        self._staleness += release.staleness
        self._held += held

    def allow(self, learners: int, why: str) -> None:
        """Let so many learners run at once from now on, between two rounds."""
        self._learners, self._why = learners, why

    def step(self, result: Document) -> None:
        """Count a version by the result of its call."""
        self._steps.append(result)

    def drop(self, reason: str, cost_picodollars: int) -> None:
        self._dropped[reason] += 1
        self._wasted_picodollars += cost_picodollars

    def report(self, now_s: float, bound: float | None, queue_most: int) -> GradientsReport:
        """Return the round's figures, and begin the next round."""
        gradients = len(self._staleness)
        lasted_ns = max(1, round((now_s - self._began_s) * _NS))
        report = GradientsReport(
            learners=self._learners,
            gradients=gradients,
            steps=len(self._steps),
            released=dict(self._released),
            staleness_least=min(self._staleness, default=0.0),
            staleness_mean=sum(self._staleness) / max(1, gradients),
            staleness_most=max(self._staleness, default=0.0),
            bound=bound,
            queue_mean=self._queued_ns / lasted_ns,
            queue_most=queue_most,
            held_share=self._held / max(1, gradients),
            learners_busy=self._learner_ns / lasted_ns,
            actors_busy=self._actor_ns / lasted_ns,
            starved_share=min(1.0, self._starved_ns / lasted_ns / self._learners),
            learning_s=self._learning_ns / _NS,
            step_length=_mean([step.get("step_length") for step in self._steps]) or 1.0,
            ratio_mean=_mean([(step.get("importance") or {}).get("weight") for step in self._steps]),
            effective_share=_mean([(step.get("importance") or {}).get("effective") for step in self._steps]),
            truncated_share=_mean([(step.get("importance") or {}).get("truncated") for step in self._steps]),
            dropped=dict(self._dropped),
            wasted_picodollars=self._wasted_picodollars,
            learners_why=self._why,
        )
        self.begin(now_s)
        return report


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
