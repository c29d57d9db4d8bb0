"""What schedulers cost before they decide anything: on no bill of a run that they decide in, and never hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from research.experiment import Experiment
from research.scheduler_training import RehearsedTraining


def scheduler_cost_sentences(experiment: Experiment, arms: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each scheduler that has been trained: its real episodes, what it rehearsed on, and, of one that
    began with another's weights, its part of what training from scratch costs there.
    """
    spent = {(arm["environment"], arm["arm"]): _first(arm) for arm in arms}
    studies = {arm.name: arm.study for arm in experiment.arms if isinstance(arm.study, RehearsedTraining)}
    sentences = []
    for arm in arms:
        environment, study = arm["environment"], studies.get(arm["arm"])
        usd = spent[environment, arm["arm"]]
        if study is None or usd is None:
            continue
        scratch = [
            cost
            for name, other in studies.items()
            if other.begin_with is None and (cost := spent.get((environment, name)))
        ]
        recorded = sum(spent.get((environment, name)) or 0.0 for name in study.recorded)
        share = (
            f", {100 * usd / scratch[0]:.0f} % of those from scratch" if study.begin_with and scratch else ""
        )
        several = f"{study.episodes} real episode{'s' * (study.episodes != 1)}"
        words = f"{environment}, {arm['title']}: ${usd:,.2f} for its {several}{share}."
        if recorded:
            words += (
                f" Rehearsals cost nothing; the runs that they were put together from cost ${recorded:,.2f}."
            )
        sentences.append(words)
    return sentences


def _first(arm: dict[str, Any]) -> float | None:
    """Of the first seed, with which schedulers are trained; None where nothing is complete."""
    return next(iter(arm["cost_usd_by_seed"].values()), None)
