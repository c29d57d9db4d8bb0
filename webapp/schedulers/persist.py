"""Stores the results of a training: rows of episodes, a version with its facts, or the reason of a failure."""

from __future__ import annotations

from datetime import datetime
from statistics import fmean
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Min, QuerySet, Sum

from training.rl.learner import LearnerState
from training.scaling.agent_weights import as_text
from training.scheduling.judging import Agent, better
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.leases import LeaseLost
from webapp.schedulers import leases
from webapp.schedulers.models import (
    JUDGED,
    Episode,
    EpisodeKind,
    Scheduler,
    SchedulerTraining,
    TrainingState,
    Version,
)
from webapp.schedulers.trainer import EpisodeStep
from webapp.schedulers.verdicts import evidence

CRASHES_AT_MOST = 3
_LAST_REHEARSALS = 20
_FIGURES = (
    *("kind", "number", "rounds", "platform_s", "wall_s", "cost_picodollars"),
    *("best_return", "reached", "score"),
)
"""Of a step and its row alike."""


def row(training: SchedulerTraining, step: EpisodeStep, at: datetime) -> Episode:
    figures = {name: getattr(step, name) for name in _FIGURES}
    reports = [report.model_dump(mode="json") for report in step.reports]
    plans = {"actors": list(step.actors), "memory_mb": list(step.memory_mb)}
    return Episode(training=training, at=at, **figures, **plans, reports=reports)


@transaction.atomic
def store_version(training: SchedulerTraining, epoch: int, *, clock: Clock = SYSTEM_CLOCK) -> Version:
    """Store the next version of the scheduler of that name, which is created if new. Raises LeaseLost."""
    if not leases.held(training.pk, epoch).select_for_update().exists():
        raise LeaseLost
    spec = training.parsed_spec
    scheduler, _ = Scheduler.objects.get_or_create(
        project=training.project, name=training.name, defaults={"created_at": clock.now()}
    )
    before = scheduler.versions.aggregate(last=Max("number"))["last"] or 0
    scores = judged_scores(training)
    chosen = better(scores)
    learner = bytes((training.best_learner if chosen == "best" else training.learner) or b"")
    version, _ = Version.objects.get_or_create(
        training=training,
        defaults={
            "scheduler": scheduler,
            "number": before + 1,
            "made_at": clock.now(),
            "weights": as_text(LearnerState.decode(learner).actor_weights(spec.network)),
            "learner": learner,
            "facts": {**facts(training), **_chosen(training, chosen, scores)},
        },
    )
    return version


def judged_scores(training: SchedulerTraining) -> dict[Agent, float]:
    """The scores of the judged agents; empty if none was judged."""
    rows = training.episodes.filter(kind=EpisodeKind.JUDGED).values_list("number", "score")
    return {JUDGED[number - 1]: score for number, score in rows if score is not None}


def _chosen(training: SchedulerTraining, chosen: Agent, scores: dict[Agent, float]) -> dict[str, Any]:
    """Which agent is used, and the scores that decided. The episode is the real one's number, counted from 1."""
    if not scores:
        return {}
    first = training.episodes.filter(kind=EpisodeKind.REHEARSAL).count()
    return {"chosen": {"agent": chosen, "episode": training.best_number - first, "scores": scores}}


def facts(training: SchedulerTraining) -> dict[str, Any]:
    """The figures of a training: its cost, means of rehearsals beside means of real episodes, and the evidence that
    it is worth using.
    """
    rows = training.episodes.all()
    real, rehearsals = rows.filter(kind=EpisodeKind.REAL), rows.filter(kind=EpisodeKind.REHEARSAL)
    sums = rows.aggregate(cost=Sum("cost_picodollars"), wall=Sum("wall_s"))
    best_of = Max if training.parsed_spec.workload.score.higher_is_better else Min
    simulated_s = rows.exclude(kind=EpisodeKind.REHEARSAL).aggregate(sum=Sum("platform_s"))["sum"]
    return {
        "episodes": real.count(),
        "reached": real.filter(reached=True).count(),
        "rehearsals": rehearsals.count(),
        "recorded": rows.filter(kind=EpisodeKind.GRID).count(),
        "cost_picodollars": sums["cost"] or 0,
        "wall_s": sums["wall"] or 0.0,
        "platform_s": simulated_s or 0.0,
        "best_return": real.aggregate(best=best_of("best_return"))["best"],
        "rehearsed": _usual(rehearsals.order_by("-number")[:_LAST_REHEARSALS]),
        "real": _usual(real.order_by("-number")[:_LAST_REHEARSALS]),
        **evidence(training),
    }


def _usual(rows: QuerySet[Episode]) -> dict[str, float] | None:
    """Means of the last episodes of a kind."""
    usual = list(rows)
    if not usual:
        return None
    return {
        "score": fmean(episode.score or 0.0 for episode in usual),
        "platform_s": fmean(episode.platform_s for episode in usual),
        "rounds": fmean(episode.rounds for episode in usual),
        "actors": fmean(fmean(episode.actors) if episode.actors else 0.0 for episode in usual),
        "best_return": fmean(episode.best_return or 0.0 for episode in usual),
        "episodes": len(usual),
    }


def crashed(training_id: int, epoch: int, reason: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue the training again after a crash; after CRASHES_AT_MOST in a row without an episode it fails."""
    mine = leases.held(training_id, epoch)
    free = {**leases.GIVEN_BACK, "since": clock.now()}
    if mine.filter(crashes__lt=CRASHES_AT_MOST - 1).update(
        state=TrainingState.QUEUED, crashes=F("crashes") + 1, reason=reason[:500], **free
    ):
        return
    words = f"It ended with an error {CRASHES_AT_MOST} times in a row: {reason}"
    mine.update(state=TrainingState.FAILED, reason=words[:500], finished_at=clock.now(), **free)


def described(version: Version) -> dict[str, Any]:
    """A version as JSON, without its weights."""
    training = version.training
    return {
        "id": version.key,
        "name": version.scheduler.name,
        "version": version.number,
        "made_at": version.made_at.isoformat(),
        "facts": version.facts,
        "spec": training.spec,
        "platform": training.platform,
        "budget_of_an_episode_picodollars": training.budget_picodollars,
    }


def exported(version: Version) -> dict[str, Any]:
    """A version as JSON, with its scaling policy and weights in the form that a job's spec takes."""
    policy = version.training.parsed_spec.policy(version.weights, explore=False)
    return {"schema_version": 1, **described(version), "scaling": policy.model_dump(mode="json")}
