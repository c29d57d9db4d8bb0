"""The rows of the list of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import F, QuerySet

from webapp.jobs.headings import TRAINING_KIND
from webapp.jobs.list.columns import mean_score
from webapp.jobs.list.seed_rows import state_of
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.seed_groups import without_seed


def list_groups(project: Any) -> QuerySet[JobGroup]:
    """The project's groups that hold a job of the list, newest first."""
    listed = JobGroup.objects.filter(project=project, jobs__archived_at=None, jobs__deleted_at=None)
    return listed.distinct().order_by("-created_at", "-pk")


def group_rows(groups: Sequence[JobGroup]) -> list[dict[str, Any]]:
    """What the list of groups shows of each, in two queries for all."""
    jobs = Job.objects.filter(groups__in=groups, archived_at=None, deleted_at=None)
    members: dict[int, list[Job]] = {group.pk: [] for group in groups}
    rows = jobs.annotate(group_id=F("groups")).select_related("account")
    for job in rows.defer("spec", "summary", "note").annotate(training_kind=TRAINING_KIND):
        members[job.group_id].append(job)
    return [_group_row(group, members[group.pk]) for group in groups if members[group.pk]]


def _group_row(group: JobGroup, jobs: Sequence[Job]) -> dict[str, Any]:
    accounts = [job.account for job in jobs]
    return {
        "group": group,
        "runs": len(jobs),
        "questions": len({without_seed(job.name) for job in jobs}),
        "state": state_of(jobs),
        "mean": mean_score(jobs),
        "spent": sum(one.spent_picodollars + one.overrun_picodollars for one in accounts),
        "limit": sum(one.limit_picodollars for one in accounts),
        "unreal": next((job.unreal for job in jobs if job.unreal), ""),
    }
