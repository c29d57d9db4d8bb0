"""What is read of schedulers, their trainings and recorded rounds."""

from __future__ import annotations

from django.db.models import Count, OuterRef, QuerySet, Subquery

from training.engine.reports import RoundReport
from training.scheduling.decisions import FixedPlan
from webapp.accounts.models import Project
from webapp.http.responses import or_404
from webapp.schedulers.models import Episode, EpisodeKind, Scheduler, SchedulerTraining, Version

RECORDED_AT_MOST = 40
"""Rehearsals draw their rounds from this many of the newest recorded trainings."""


def schedulers_of(project: Project) -> QuerySet[Scheduler]:
    return Scheduler.objects.filter(project=project).annotate(version_count=Count("versions"))


def scheduler_in(project: Project, scheduler_id: str) -> Scheduler:
    return or_404(Scheduler.objects.filter(project=project, pk=scheduler_id).first(), "scheduler")


def versions_of(project: Project) -> QuerySet[Version]:
    """All versions of the project's schedulers, newest first, with what they were trained on."""
    rows = Version.objects.filter(scheduler__project=project).select_related("scheduler", "training")
    return rows.defer("learner", "training__learner", "training__best_learner").order_by("-made_at", "-pk")


def newest_versions(project: Project) -> dict[str, Version]:
    """The newest version of each of the project's schedulers, by the scheduler's id."""
    newest = Version.objects.filter(scheduler=OuterRef("scheduler")).order_by("-number").values("pk")[:1]
    return {version.scheduler_id: version for version in versions_of(project).filter(pk=Subquery(newest))}


def version_in(project: Project, key: str) -> Version | None:
    """The version with the key that specs use, such as sch_abcdefghij.2; None if the project has none."""
    scheduler_id, _, number = key.rpartition(".")
    if not number.isdecimal() or len(number) > 9:
        return None
    return versions_of(project).filter(scheduler_id=scheduler_id, number=int(number)).first()


def trainings_of(project: Project) -> QuerySet[SchedulerTraining]:
    """The project's trainings, without those of searches."""
    rows = SchedulerTraining.objects.filter(project=project, search="")
    return rows.select_related("version__scheduler", "requested_by").defer("learner", "best_learner")


def training_in(project: Project, training_id: int) -> SchedulerTraining:
    rows = SchedulerTraining.objects.filter(project=project, pk=training_id).defer("learner", "best_learner")
    return or_404(rows.select_related("version__scheduler", "begin_with__scheduler").first(), "training")


def _really_ran(training: SchedulerTraining) -> QuerySet[Episode]:
    kinds = (EpisodeKind.GRID, EpisodeKind.REAL)
    same = {"training__project": training.project_id, "training__workload_key": training.workload_key}
    return Episode.objects.filter(**same, kind__in=kinds, rounds__gt=0)


def recorded_plans(training: SchedulerTraining) -> set[FixedPlan]:
    """The fixed plans with which trainings of this workload have been recorded in the project."""
    grid = _really_ran(training).filter(kind=EpisodeKind.GRID)
    rows = grid.values_list("actors", "memory_mb")
    return {FixedPlan(actors[0], memory_mb[0] if memory_mb else None) for actors, memory_mb in rows}


def last_recorded(training: SchedulerTraining) -> int:
    """The key of the last recorded episode; 0 if there is none."""
    return _really_ran(training).order_by("-pk").values_list("pk", flat=True).first() or 0


def recorded(training: SchedulerTraining) -> list[list[RoundReport]]:
    """The recorded trainings that it rehearses with, oldest first; the same on each call."""
    rows = _really_ran(training).filter(pk__lte=training.recorded_until or 0).order_by("-pk")
    newest = list(rows.values_list("reports", flat=True)[:RECORDED_AT_MOST])
    return [[RoundReport.model_validate(report) for report in reports] for reports in reversed(newest)]
