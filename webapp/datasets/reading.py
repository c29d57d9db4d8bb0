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
from django.db import transaction
from django.db.models import QuerySet

from cloud.workers.processes import bound_to_this_process
from training.data.manifest import Manifest
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.datasets import files
from webapp.datasets.models import DataSet, DataState
from webapp.datasets.services import READ
from webapp.jobs.models import Job
from webapp.storage_faults import storage_fault
from webapp.worker_stop import worker_stop

log = logging.getLogger(__name__)

WITHIN_S = 900.0
RESEND_AFTER = timedelta(seconds=4)
GIVEN_UP_AFTER = timedelta(seconds=WITHIN_S + 60)
_AT_ONCE = 10
_SURROUNDINGS = ("OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1")
# Reading keeps a core busy, and training needs the cores more. Shards are stored and deleted one data set at a time.
_one_at_a_time = threading.Lock()


Reader = Callable[[Sequence[str], str], dict[str, Any]]
"""Takes the arguments and the standard input of `training.data.readers`, and returns what it prints."""


class _Interrupted(Exception):
    """The worker stops; the table is read again by the next."""


class _Refused(Exception):
    """The text says what is wrong with the table."""


def read(data_set_id: int, *, ask: Reader | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
    """Do what the row waits for. Does nothing while this worker reads another table.

    `ask` reads the table, by default in a process of its own.
    """
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        row = DataSet.objects.filter(pk=data_set_id).first()
        if row is not None and row.state == DataState.DELETING:
            _remove(row)
        elif (attempt := _Attempt.begin(data_set_id, clock)) is not None:
            attempt.run(ask or ask_process)
    finally:
        _one_at_a_time.release()


class _Attempt:
    """One reading. Only the last attempt of a row writes to it."""

    def __init__(self, row: DataSet, clock: Clock) -> None:
        self._row, self._clock = row, clock

    @classmethod
    def begin(cls, data_set_id: int, clock: Clock) -> _Attempt | None:
        """Take the row if it waits; None if it does not."""
        with transaction.atomic():
            row = DataSet.objects.select_for_update().filter(pk=data_set_id, state=DataState.QUEUED).first()
            if row is None:
                return None
            row.state, row.attempt, row.since = DataState.READING, row.attempt + 1, clock.now()
            row.save(update_fields=["state", "attempt", "since"])
        return cls(row, clock)

    def run(self, ask: Reader) -> None:
        chosen = self._row.choice is not None
        try:
            if chosen:
                self._prepare(ask)
            else:
                self._survey(ask)
        except _Interrupted:
            self._write(state=DataState.QUEUED)
        except _Refused as refusal:
            self._refuse(str(refusal), chosen)
        except Exception as error:
            if (fault := storage_fault(error)) is not None:
                log.warning("data set %s is read again later: %s", self._row.pk, error)
                self._write(
                    state=DataState.QUEUED, reason=f"{fault.why} It goes on once the disk can be written."
                )
                return
            log.exception("data set %s", self._row.pk)
            self._refuse(
                f"It could not be read ({type(error).__name__}). The worker's log says more.", chosen
            )

    def _survey(self, ask: Reader) -> None:
        path = files.upload_path(self._row.pk)
        answer = _unless_refused(ask(["survey", str(path)], ""))
        if "format" in answer:  # it says itself what is learned: there is nothing to choose
            request = {"name": self._row.name, "file_name": self._row.file_name}
            self._store(ask, ["known", answer["format"]], request)
            return
        self._write(state=DataState.CHOOSING, survey=answer["survey"], reason="")

    def _prepare(self, ask: Reader) -> None:
        row = self._row
        request = {
            "survey": row.survey,
            "choice": row.choice,
            "name": row.name,
            "source": f"{row.file_name}, uploaded {row.uploaded_at:%Y-%m-%d}",
        }
        self._store(ask, ["prepare"], request)

    def _store(self, ask: Reader, way: list[str], request: dict[str, Any]) -> None:
        """Store the shards that the process makes of the table; then the data set is ready."""
        row, path = self._row, files.upload_path(self._row.pk)
        folder = files.prepared_folder(row.pk, row.attempt)
        try:
            answer = _unless_refused(ask([*way, str(path), str(folder)], json.dumps(request)))
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
        if self._write(state=DataState.READY, manifest=manifest.hash, facts=facts, reason=""):
            path.unlink(missing_ok=True)
        else:
            _remove_shards(manifest, DataSet.objects.all())

    def _refuse(self, words: str, chosen: bool) -> None:
        """After a choice the table waits for another one; before it, the file is of no use."""
        state = DataState.CHOOSING if chosen else DataState.FAILED
        if self._write(state=state, choice=None, reason=words) and not chosen:
            files.upload_path(self._row.pk).unlink(missing_ok=True)

    def _write(self, **changes: Any) -> bool:
        """Write to the row if this is its last attempt; otherwise return False."""
        row = self._row
        mine = DataSet.objects.filter(pk=row.pk, attempt=row.attempt, state=DataState.READING)
        return bool(mine.update(**changes, since=self._clock.now()))


def _unless_refused(answer: dict[str, Any]) -> dict[str, Any]:
    if "refused" in answer:
        raise _Refused(str(answer["refused"]))
    if "errno" in answer:
        raise OSError(answer["errno"], answer["error"])
    return answer


def ask_process(arguments: Sequence[str], given: str) -> dict[str, Any]:
    """What the process that reads prints. Raises _Refused if it ended without an answer, or _Interrupted."""
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
        raise _Interrupted
    if process.returncode != 0:
        log.error("reading %s ended with %s: %s", arguments, process.returncode, errors[-2000:])
        raise _Refused(
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


def look_after_data_sets(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue tables that a dead worker left behind, send lost messages again, and remove files that no row needs."""
    now = clock.now()
    lost = DataSet.objects.filter(state=DataState.READING, since__lt=now - GIVEN_UP_AFTER)
    lost.update(state=DataState.QUEUED, since=now - RESEND_AFTER)
    _remove_leftovers(now)
    if _one_at_a_time.locked():
        return
    waiting = DataSet.objects.filter(
        state__in=(DataState.QUEUED, DataState.DELETING), since__lte=now - RESEND_AFTER
    )
    for data_set_id in waiting.order_by("since").values_list("pk", flat=True)[:_AT_ONCE]:
        if not send_hint(READ, data_set_id):
            return


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
