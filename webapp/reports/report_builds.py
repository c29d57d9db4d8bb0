"""Large reports: asked for on a page, made by the worker, one at a time, kept for a week. The row is the truth.

A lost message costs seconds: `look_after_files` sends it again. A worker that died leaves a report that is built again.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from webapp.accounts.models import Project
from webapp.alerts.models import Kind, Severity
from webapp.alerts.services import raise_alert
from webapp.celery import app as celery_app
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.reports.cells import charge_count
from webapp.reports.files.formats import FORMATS, make
from webapp.reports.models import FileState, ReportFile
from webapp.reports.report_query import Question

log = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=7)
ASK_AGAIN_AFTER = timedelta(seconds=5)
SILENT_FOR = timedelta(seconds=120)
"""A file that is being built tells how far it is every few seconds; after so long its worker is gone."""
WAITED_FOR = timedelta(seconds=60)
"""Whoever asked for a file that is ready sooner still looks at the page, or asks the API again: no alert."""
MOST_UNFINISHED = 5
_TOLD_EVERY_ROWS = 10_000
_FILES_AT_ONCE = 10
# Building keeps a core busy, and training needs them more.
_one_at_a_time = threading.Lock()


class TooMany(ValueError):
    """Enough reports are being built for this project; the text says so."""


def folder() -> Path:
    """Where finished reports lie."""
    path = Path(settings.STARLING_DATA) / "reports"
    path.mkdir(parents=True, exist_ok=True)
    return path


@transaction.atomic
def ask_for_file(
    *, question: Question, format_key: str, user: Any, clock: Clock = SYSTEM_CLOCK
) -> ReportFile:
    """A report to be built. The same one that is still on its way is not asked for twice. Raises TooMany."""
    document = question.model_dump(mode="json")
    unfinished = ReportFile.objects.filter(
        Q(project_id=question.project), state__in=(FileState.QUEUED, FileState.BUILDING)
    )
    same = unfinished.filter(question=document, format=format_key).first()
    if same is not None:
        return same
    if unfinished.count() >= MOST_UNFINISHED:
        raise TooMany(f"{MOST_UNFINISHED} reports of this project are being built. Wait for one of them.")
    now = clock.now()
    made = ReportFile.objects.create(
        project_id=question.project,
        question=document,
        format=format_key,
        asked_by=user,
        asked_at=now,
        since=now,
        rows_of=charge_count(question),
    )
    transaction.on_commit(lambda: _ask_worker(made.pk), robust=True)
    return made


def build(file_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Build what is queued under that number. Harmless if it is not, or if another is being built."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        queued = ReportFile.objects.filter(pk=file_id, state=FileState.QUEUED)
        if queued.update(state=FileState.BUILDING, since=clock.now(), rows_done=0):
            _build(ReportFile.objects.select_related("project").get(pk=file_id), clock)
    finally:
        _one_at_a_time.release()


def _build(report: ReportFile, clock: Clock) -> None:
    mine = ReportFile.objects.filter(pk=report.pk, state=FileState.BUILDING)
    question = Question.model_validate(report.question)
    name = f"{report.pk}{FORMATS[report.format].suffix}"
    path, told = folder() / name, 0

    def tell(rows: int) -> None:
        nonlocal told
        if rows - told >= _TOLD_EVERY_ROWS:
            told = rows
            mine.update(rows_done=rows, since=clock.now())

    try:
        whose = whose_words(report.project)
        make(question, report.format, path, whose=whose, made_at=clock.now(), tell=tell)
    except Exception as error:
        log.exception("report %s", report.pk)
        path.unlink(missing_ok=True)
        reason = (
            f"It could not be built ({type(error).__name__}). Build it again; the worker's log says more."
        )
        mine.update(state=FileState.FAILED, reason=reason, since=clock.now())
        return
    changes: dict[str, Any] = {
        "state": FileState.READY,
        "file": name,
        "byte_count": path.stat().st_size,
        "rows_done": report.rows_of,
        "since": clock.now(),
        "expires_at": clock.now() + KEPT_FOR,
    }
    if mine.update(**changes) and clock.now() - report.asked_at >= WAITED_FOR:
        _notify(report, question, clock)


def _notify(report: ReportFile, question: Question, clock: Clock) -> None:
    """The notice is in the list of reports anyway; an alert is for people who have left the page."""
    chosen = FORMATS[report.format]
    raise_alert(
        project_id=report.project_id,
        kind=Kind.REPORT,
        subject=chosen.name_of_file(question, report.project.slug if report.project else "installation"),
        sentence=f"The {chosen.word} report of {question.period} is ready. It is kept for {KEPT_FOR.days} days.",
        severity=Severity.INFO,
        dedupe_key=f"report-{report.pk}",
        clock=clock,
    )


def whose_words(project: Project | None) -> str:
    return f"project {project.name}" if project else "this installation"


def look_after_files(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Build again what a worker left behind, ask again for what waits, and delete what is old."""
    now = clock.now()
    lost = ReportFile.objects.filter(state=FileState.BUILDING, since__lt=now - SILENT_FOR)
    lost.update(state=FileState.QUEUED, since=now - ASK_AGAIN_AFTER)
    for old in ReportFile.objects.filter(expires_at__lt=now)[:_FILES_AT_ONCE]:
        (folder() / old.file).unlink(missing_ok=True)
        old.delete()
    ReportFile.objects.filter(state=FileState.FAILED, since__lt=now - KEPT_FOR).delete()
    if _one_at_a_time.locked():
        return
    waiting = ReportFile.objects.filter(state=FileState.QUEUED, since__lte=now - ASK_AGAIN_AFTER)
    for file_id in waiting.order_by("since").values_list("pk", flat=True)[:_FILES_AT_ONCE]:
        if not _ask_worker(file_id):
            break


def _ask_worker(file_id: int) -> bool:
    """Send the message; False if it could not be. The row says the same, and is looked at every few seconds."""
    try:
        celery_app.send_task("webapp.reports.tasks.build_report", args=[file_id])
    except Exception as error:  # whatever the broker's client raises: the request must not fail for a hint
        log.warning("report %s waits for the next look, no message could be sent: %s", file_id, error)
        return False
    return True
