"""Services of data sets: accept a file, choose what is learned, delete. The worker reads, by what the rows say."""

from __future__ import annotations

from typing import BinaryIO

from django.db import transaction

from training.data.readers.choice import Choice, ChoiceProblem, check
from training.data.readers.survey import TableSurvey
from webapp.accounts.models import Project, User
from webapp.background import send_on_commit
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.datasets import files, queries
from webapp.datasets.models import DataSet, DataState
from webapp.formatting import format_file_size, plural
from webapp.http.refusals import ActionRefused

MOST_IN_A_PROJECT = 100
MOST_KEPT_BYTES = 20_000_000_000
"""Of the tables and data sets of a project, on the disk that the database shares."""
NAME_LETTERS = 100
_NAMED_JOBS = 3


class DataRefused(ActionRefused, ValueError):
    """Nothing was changed; the text says why and what to do."""


class ChoiceRefused(ValueError):
    """The choice cannot be learned from; `problems` say why, field by field."""

    def __init__(self, problems: list[ChoiceProblem]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = problems


def accept_file(
    *,
    project: Project,
    user: User,
    file_name: str,
    file: BinaryIO,
    size: int,
    name: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> DataSet:
    """Store the file for the worker and return its row. Raises DataRefused."""
    if size > files.MOST_UPLOADED_BYTES:
        raise _too_large()
    if not size:
        raise DataRefused("The file is empty. Upload a table with names of columns in its first row.")
    if queries.data_sets_of(project).count() >= MOST_IN_A_PROJECT:
        raise DataRefused(f"The project has {MOST_IN_A_PROJECT} data sets. Delete one first.")
    _check_room(project)
    try:
        kept, byte_count = files.keep(file)
    except files.TooLarge:
        raise _too_large() from None
    try:
        with transaction.atomic():
            now = clock.now()
            made = DataSet.objects.create(
                project=project,
                name=(name.strip() or _title(file_name))[:NAME_LETTERS],
                file_name=file_name[:200],
                byte_count=byte_count,
                uploaded_by=user,
                uploaded_at=now,
                since=now,
            )
            kept.replace(files.upload_path(made.pk))
            send_on_commit(made)
    finally:
        kept.unlink(missing_ok=True)
    return made


def _check_room(project: Project) -> None:
    held = queries.bytes_held(project)
    if held >= MOST_KEPT_BYTES:
        raise DataRefused(
            f"The project's data sets have {format_file_size(held)} of the disk, of at most"
            f" {format_file_size(MOST_KEPT_BYTES)}. Delete one first."
        )


def _title(file_name: str) -> str:
    """The file's name without its folders and endings: flights of data/flights.csv.gz."""
    bare = file_name.replace("\\", "/").rpartition("/")[2]
    for ending in (".gz", ".tgz", ".tar", ".zip", ".csv", ".tsv", ".txt", ".npz"):
        bare = bare[: -len(ending)] if bare.lower().endswith(ending) else bare
    return bare.strip() or "table"


def _too_large() -> DataRefused:
    limit = files.MOST_UPLOADED_BYTES // 1_000_000
    return DataRefused(f"The file has more than {limit} MB. Pack it with gzip, or upload a part of its rows.")


def choose(*, data_set: DataSet, choice: Choice, clock: Clock = SYSTEM_CLOCK) -> DataSet:
    """Let the worker make the data set of this choice. Raises ChoiceRefused, or DataRefused if it is too late."""
    if data_set.state != DataState.CHOOSING:
        raise DataRefused("There is nothing to choose: the table is not read yet, or its data set is made.")
    if problems := check(TableSurvey.model_validate(data_set.survey), choice):
        raise ChoiceRefused(problems)
    _check_room(data_set.project)
    with transaction.atomic():
        changed = {"state": DataState.QUEUED, "choice": choice.model_dump(mode="json"), "reason": ""}
        waits = DataSet.objects.filter(pk=data_set.pk, state=DataState.CHOOSING)
        if not waits.update(**changed, since=clock.now()):
            raise DataRefused("Someone else chose at the same time.")
        send_on_commit(data_set)
    data_set.refresh_from_db()
    return data_set


def delete(*, data_set: DataSet, clock: Clock = SYSTEM_CLOCK) -> None:
    """Delete the data set. Jobs that learned from it and their costs stay. Raises DataRefused while a job needs it."""
    using = list(queries.unfinished_jobs_with(data_set)[: _NAMED_JOBS + 1])
    if using:
        named = ", ".join(f"“{job.name}”" for job in using[:_NAMED_JOBS])
        more = " and others" if len(using) > _NAMED_JOBS else ""
        raise DataRefused(
            f"{data_set.name} is in use by {plural(len(using), 'job') if not more else 'jobs'}: {named}{more}. Stop"
            f" {'it' if len(using) == 1 else 'them'} first."
        )
    with transaction.atomic():
        DataSet.objects.filter(pk=data_set.pk).update(state=DataState.DELETING, since=clock.now())
        # The worker removes the rest. It may be busy for long, and the table is of no use to it.
        path = files.upload_path(data_set.pk)
        transaction.on_commit(lambda: path.unlink(missing_ok=True), robust=True)
        send_on_commit(data_set)
