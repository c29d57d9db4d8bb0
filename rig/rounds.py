"""A made-up round, as an engine reports it."""

from __future__ import annotations

from training.engine.messages import RoundFinished
from training.engine.reports import RoundReport, Spend, Usage
from training.rl.figures import LearningFigures, UpdateReport


def round_finished(
    round_no: int,
    *,
    actors: int = 8,
    spent: int | None = None,
    accrued: int = 0,
    mean: float | None = 20.0,
) -> RoundFinished:
    """A round of 256 steps and one second."""
    update = UpdateReport(
        policy_loss=0.0,
        value_loss=1.0,
        entropy=0.5,
        approximate_kl=0.01,
        clip_fraction=0.1,
        explained_variance=0.0,
        gradient_norm=1.0,
        learning_rate=1e-3,
    )
    spend = None
    if spent is not None:
        spend = Spend(
            spent_picodollars=spent,
            reserved_picodollars=0,
            limit_picodollars=10**12,
            accrued_picodollars=accrued,
        )
    return RoundFinished(
        report=RoundReport(
            round_no=round_no,
            version=round_no,
            actors=actors,
            plan_reason="fixed",
            progress=256,
            total_progress=256 * round_no,
            figures=LearningFigures(
                episodes=3, episode_return_mean=mean, episode_length_mean=mean, update=update
            ),
            started_s=round_no - 1.0,
            collect_s=0.75,
            update_s=0.25,
            total_s=1.0,
            cold_starts=0,
            failed_calls=0,
            retried_calls=0,
            usage=Usage(),
            learner_usage=Usage(),
            cost_picodollars=0,
            spend=spend,
        )
    )
