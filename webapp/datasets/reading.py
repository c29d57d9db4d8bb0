"""The worker's part: a table is read in a process with a memory limit, and what was deleted is removed from the disk.

The row says what is to be done. A file that cannot be read is removed; one whose choice was refused waits for another.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from cloud.workers.processes import bound_to_this_process
from training.data.manifest import Manifest
from webapp.background import Attempt, LifeCycle, Postponed, TakenOver, WorkRefused
from webapp.clock import Clock
from webapp.datasets import files
from webapp.datasets.models import DataSet, DataState
from webapp.jobs.models import Job
from webapp.processes.worker_stop import worker_stop

log = logging.getLogger(__name__)

WITHIN_S = 900.0
_SURROUNDINGS = ("OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1")

Reader = Callable[[Sequence[str], str], dict[str, Any]]
"""Takes the arguments and the standard input of `training.data.readers`, and returns what it prints."""


class DataReading(LifeCycle[DataSet]):
    """Reads tables and removes what was deleted. `ask` reads a table, by default in a process of its own."""

    model = DataSet
    working = DataState.READING
    silent_for = timedelta(seconds=WITHIN_S + 60)
    resumes = "It goes on once the disk can be written."
    unforeseen = "It could not be read ({}). The worker's log says more."
    waiting = (DataState.QUEUED, DataState.DELETING)

    def __init__(self, ask: Reader | None = None) -> None:
        super().__init__()
        self._ask = ask

    def begin(self, pk: Any, clock: Clock) -> Attempt[DataSet] | None:
        if (deleted := self.rows.filter(pk=pk, state=DataState.DELETING).first()) is not None:
            _remove(deleted)
        return super().begin(pk, clock)

    def do(self, attempt: Attempt[DataSet]) -> None:
        if attempt.row.choice is None:
            self._survey(attempt)
        else:
            self._prepare(attempt)

    def _survey(self, attempt: Attempt[DataSet]) -> None:
        row = attempt.row
        answer = self._answer(["survey", str(files.upload_path(row.pk))], "")
        if "format" in answer:  # it says itself what is learned: there is nothing to choose
            request = {"name": row.name, "file_name": row.file_name}
            self._store(attempt, ["known", answer["format"]], request)
            return
        attempt.write(state=DataState.CHOOSING, survey=answer["survey"], reason="")

    def _prepare(self, attempt: Attempt[DataSet]) -> None:
        row = attempt.row
        request = {
            "survey": row.survey,
            "choice": row.choice,
            "name": row.name,
            "source": f"{row.file_name}, uploaded {row.uploaded_at:%Y-%m-%d}",
        }
        self._store(attempt, ["prepare"], request)

    def _store(self, attempt: Attempt[DataSet], way: list[str], request: dict[str, Any]) -> None:
        """Store the shards that the process makes of the table; then the data set is ready."""
        row, path = attempt.row, files.upload_path(attempt.row.pk)
        folder = files.prepared_folder(row.pk, row.attempt)
        try:
            answer = self._answer([*way, str(path), str(folder)], json.dumps(request))
            manifest = files.take_over(folder, answer["manifest"])
        finally:
            files.remove(folder)
        facts = {
            "kind": manifest.kind,
            "width": manifest.width,
            "rows": manifest.rows,
            "held_out_rows": manifest.held_out_rows,
            "byte_count": manifest.byte_count,
            "shards": len(manifest.shards),
            "target": manifest.target,
            "classes": list(manifest.classes),
            "class_counts": list(manifest.class_counts),
            "held_out_class_counts": list(manifest.held_out_class_counts),
            "picture": manifest.picture,
        }
        try:
            attempt.write(state=DataState.READY, manifest=manifest.hash, facts=facts, reason="")
        except TakenOver:
            _remove_shards(manifest, self.rows)
            raise
        path.unlink(missing_ok=True)

    def _answer(self, arguments: Sequence[str], given: str) -> dict[str, Any]:
        answer = (self._ask or ask_process)(arguments, given)
        if "refused" in answer:
            raise WorkRefused(str(answer["refused"]))
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        return answer

    def fail(self, attempt: Attempt[DataSet], reason: str) -> None:
        """After a choice the table waits for another one; before it, the file is of no use."""
        if attempt.row.choice is not None:
            attempt.write(state=DataState.CHOOSING, choice=None, reason=reason)
            return
        super().fail(attempt, reason)
        files.upload_path(attempt.row.pk).unlink(missing_ok=True)

    def tidy(self, now: datetime) -> None:
        _remove_leftovers(now)


READING = DataReading()


def ask_process(arguments: Sequence[str], given: str) -> dict[str, Any]:
    """What the process that reads prints. Raises WorkRefused if it ended without an answer."""
    command = [sys.executable, "-m", "training.data.readers", *arguments]
    whole = bound_to_this_process(["env", *_SURROUNDINGS, "nice", "-n", "10", *command])
    process = subprocess.Popen(
        whole,
        cwd=settings.BASE_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = threading.Timer(WITHIN_S, process.kill)
    limit.start()
    try:
        with worker_stop.ends(process):
            out, errors = process.communicate(given)
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    if worker_stop.requested and process.returncode < 0:
        raise Postponed
    if process.returncode != 0:
        log.error("reading %s ended with %s: %s", arguments, process.returncode, errors[-2000:])
        raise WorkRefused(
            f"The process that read the table ended with exit code {process.returncode}. It may be too large: upload a"
            " part of it."
        )
    answer: dict[str, Any] = json.loads(out)
    return answer


def _remove(row: DataSet) -> None:
    """Remove the row, and the files that no other data set names."""
    files.upload_path(row.pk).unlink(missing_ok=True)
    manifest = files.read_manifest(row.manifest) if row.manifest else None
    if manifest is not None:
        _remove_shards(manifest, DataSet.objects.exclude(pk=row.pk))
    row.delete()


def _remove_shards(manifest: Manifest, others: QuerySet[DataSet]) -> None:
    """Remove the files that neither the other data sets nor those shipped with Starling name."""
    names = files.names_of(manifest)
    if Job.objects.filter(spec__training__data=manifest.hash).exists():
        names.discard(manifest.hash)  # the card and the script of a model need its columns and classes
    theirs = others.exclude(manifest="").values_list("manifest", flat=True)
    for other in {*theirs, *files.shipped_manifests()}:
        kept = files.read_manifest(other)
        names -= files.names_of(kept) if kept is not None else set()
    for name in names:
        (files.shards() / name).unlink(missing_ok=True)


def _remove_leftovers(now: datetime) -> None:
    """Remove tables, shards and parts of uploads that ended processes left behind."""
    left = files.leftovers(now)
    if not left:
        return
    over = (DataState.READY, DataState.FAILED)
    needed = DataSet.objects.filter(pk__in={pk for pk in left.values() if pk is not None})
    known = set(needed.exclude(state__in=over).values_list("pk", flat=True))
    for path, data_set_id in left.items():
        if data_set_id not in known:
            files.remove(path)
