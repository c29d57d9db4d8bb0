"""What is read of data sets."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.accounts.models import Project
from webapp.datasets.models import DataSet, DataState
from webapp.http.responses import or_404
from webapp.job_states import TERMINAL
from webapp.jobs.models import Job


def data_sets_of(project: Project) -> QuerySet[DataSet]:
    """The project's data sets, newest first, without those that are being deleted."""
    rows = DataSet.objects.filter(project=project).exclude(state=DataState.DELETING)
    return rows.select_related("uploaded_by").order_by("-uploaded_at", "-pk")


def data_set_in(project: Project, data_set_id: int, *, with_survey: bool = True) -> DataSet:
    rows = data_sets_of(project) if with_survey else data_sets_of(project).defer("survey")
    return or_404(rows.filter(pk=data_set_id).first(), "data set")


def data_set_to_delete(project: Project, data_set_id: int) -> DataSet:
    """As `data_set_in`, also one that is being deleted: deleting twice is no error."""
    return or_404(DataSet.objects.filter(project=project, pk=data_set_id).first(), "data set")


def bytes_held(project: Project) -> int:
    """How much of the disk the project's tables and data sets take. A table is removed once its shards are stored."""
    rows = data_sets_of(project).exclude(state=DataState.FAILED).values_list("byte_count", "facts")
    return sum(facts.get("byte_count", byte_count) for byte_count, facts in rows)


def ready_with(project: Project, manifest: str) -> DataSet | None:
    """The project's data set with that manifest, if it has one to learn from."""
    return data_sets_of(project).filter(manifest=manifest, state=DataState.READY).first()


def jobs_with(data_set: DataSet) -> QuerySet[Job]:
    """The project's jobs that learn from this data set, newest first."""
    if not data_set.manifest:
        return Job.objects.none()
    jobs = Job.objects.filter(project_id=data_set.project_id, spec__training__data=data_set.manifest)
    return jobs.order_by("-created_at")


def unfinished_jobs_with(data_set: DataSet) -> QuerySet[Job]:
    return jobs_with(data_set).exclude(observed__in=TERMINAL)
