"""Large reports: requested on a page, built by the worker one at a time, kept for a week."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from webapp.accounts.models import Project, User
from webapp.alerts.models import AlertKind, Severity
from webapp.alerts.services import raise_alert
from webapp.background import Attempt, LifeCycle, WorkRefused, send_on_commit
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.storage_faults import storage_fault
from webapp.reports.cells import charge_count
from webapp.reports.files.formats import FORMATS, make
from webapp.reports.models import FileState, ReportFile
from webapp.reports.report_query import Question

log = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=7)
SILENT_FOR = timedelta(seconds=120)
"""A worker reports its progress every few seconds; after this long without progress it is gone."""
WAITED_FOR = timedelta(seconds=60)
"""No alert for a file that is ready sooner: the person still looks at the page, or the program polls the API."""
MOST_UNFINISHED = 5
_REPORT_EVERY_ROWS = 10_000
_FILES_AT_ONCE = 10


class TooMany(ValueError):
    """The project has too many unfinished reports; the message says so."""


def folder() -> Path:
    """The folder of finished reports."""
    path = Path(settings.STARLING_DATA) / "reports"
    path.mkdir(parents=True, exist_ok=True)
    return path


@transaction.atomic
def request_file(
    *, question: Question, format_key: str, user: User, clock: Clock = SYSTEM_CLOCK
) -> ReportFile:
    """Queue a report for the worker. An equal report that is unfinished is returned instead. Raises TooMany."""
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
        requested_by=user,
        requested_at=now,
        since=now,
        rows_of=charge_count(question),
    )
    send_on_commit(made)
    return made


def _notify(report: ReportFile, question: Question, clock: Clock) -> None:
    """Raise an alert for people who have left the page. The list of reports shows the file in any case."""
    chosen = FORMATS[report.format]
    raise_alert(
        project_id=report.project_id,
        kind=AlertKind.REPORT,
        subject=chosen.name_of_file(question, report.project.slug if report.project else "installation"),
        sentence=f"The {chosen.word} report of {question.period} is ready. It is kept for {KEPT_FOR.days} days.",
        severity=Severity.INFO,
        dedupe_key=f"report-{report.pk}",
        clock=clock,
    )


def owner_name(project: Project | None) -> str:
    return f"project {project.name}" if project else "this installation"


class Building(LifeCycle[ReportFile]):
    model = ReportFile
    working = FileState.BUILDING
    silent_for = SILENT_FOR
    unforeseen = "It could not be built ({}). Build it again; the worker's log says more."

    def do(self, attempt: Attempt[ReportFile]) -> None:
        report, clock, reported = attempt.row, attempt.clock, 0
        question = Question.model_validate(report.question)
        name = f"{report.pk}{FORMATS[report.format].suffix}"
        path = folder() / name

        def on_progress(rows: int) -> None:
            nonlocal reported
            if rows - reported >= _REPORT_EVERY_ROWS:
                reported = rows
                attempt.write(rows_done=rows)

        try:
            whose = owner_name(report.project)
            make(question, report.format, path, whose=whose, made_at=clock.now(), on_progress=on_progress)
        except Exception as error:
            with suppress(OSError):  # a disk that cannot be written any more
                path.unlink(missing_ok=True)
            if (fault := storage_fault(error)) is None:
                raise
            log.exception("report %s", report.pk)
            raise WorkRefused(f"{fault.why} Build it again once the disk can be written.") from None
        attempt.write(
            state=FileState.READY,
            reason="",
            file=name,
            byte_count=path.stat().st_size,
            rows_done=report.rows_of,
            expires_at=clock.now() + KEPT_FOR,
        )
        if clock.now() - report.requested_at >= WAITED_FOR:
            _notify(report, question, clock)

    def tidy(self, now: datetime) -> None:
        """Delete old files."""
        for old in self.rows.filter(expires_at__lt=now)[:_FILES_AT_ONCE]:
            (folder() / old.file).unlink(missing_ok=True)
            old.delete()
        self.rows.filter(state=FileState.FAILED, since__lt=now - KEPT_FOR).delete()


BUILDING = Building()
