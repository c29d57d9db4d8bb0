"""What a round's report says of the versions that were made in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.engine.checkpoints import Progress
from training.engine.codec import Document
from training.engine.reports import Figures, GradientsReport, RoundReport, Spend, Usage, sum_usages
from training.loops.flight import Tally
from training.scaling.plan import Plan


@dataclass(frozen=True)
class UnreportedVersion:
    """A version that no round has reported yet: its update's result beside state and weights, and its work.

    `replayed`: all of its samples had been learned from before.
    """

    result: Document
    usage: Usage
    took_s: float
    replayed: bool = False

    @property
    def samples(self) -> int:
        """How many samples it learned from, replayed ones included."""
        return int(self.result["env_steps"])

    @property
    def amount(self) -> int:
        """The progress that it made: samples that no earlier version learned from."""
        return 0 if self.replayed else self.samples

    @property
    def staleness_mean(self) -> float:
        return float(self.result.get("staleness_mean", 0.0))


def round_report(
    progress: Progress,
    plan: Plan,
    tally: Tally,
    learned: Sequence[UnreportedVersion],
    *,
    memory_mb: int,
    progress_made: int,
    figures: Figures,
    started_s: float,
    collect_s: float,
    now_s: float,
    dropped_contributions: int,
    spend: Spend | None,
    gradients: GradientsReport | None,
) -> RoundReport:
    """Return the report of the round after those in `progress`, which has the last of the round's versions."""
    return RoundReport(
        round_no=progress.round_no + 1,
        version=progress.version,
        actors=plan.actors,
        plan_reason=plan.why,
        drawn=plan.drawn,
        memory_mb=memory_mb,
        progress=progress_made,
        replayed_samples=sum(version.samples for version in learned if version.replayed),
        total_progress=progress.total_progress,
        figures=figures,
        staleness_mean=_staleness_mean(learned),
        dropped_contributions=dropped_contributions,
        started_s=started_s,
        collect_s=collect_s,
        update_s=sum(version.took_s for version in learned) if gradients is None else gradients.learning_s,
        total_s=now_s - started_s,
        cold_starts=tally.cold_starts,
        failed_calls=tally.failed_calls,
        retried_calls=tally.retried_calls,
        usage=sum_usages(tally.usages),
        learner_usage=_learner_usage([*(version.usage for version in learned), *tally.learned]),
        cost_picodollars=tally.cost_picodollars,
        spend=spend,
        gradients=gradients,
    )


def _staleness_mean(learned: Sequence[UnreportedVersion]) -> float:
    """Return by how many versions the data of a round was older than what it changed."""
    if len(learned) == 1:
        return learned[0].staleness_mean
    samples = sum(version.samples for version in learned)
    return sum(version.staleness_mean * version.samples for version in learned) / samples if samples else 0.0


def _learner_usage(usages: Sequence[Usage]) -> Usage:
    return usages[0] if len(usages) == 1 else sum_usages(usages)
