"""What pages read about built reports, schedules and bills. Nothing here writes."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import Http404

from webapp.accounts.models import Project
from webapp.http.responses import or_404
from webapp.reports.files.formats import FORMATS
from webapp.reports.models import BilledPeriod, CloudBill, FileState, ReportFile, Schedule, Sending
from webapp.reports.report_query import BY, Question
from webapp.reports.schedules import next_day

_FILES_SHOWN = 20
_SENDINGS_SHOWN = 3


def files_of(project: Project | None) -> list[dict[str, Any]]:
    """Reports built by the worker, newest first, as their list shows them."""
    files = (
        ReportFile.objects.filter(project=project)
        .select_related("requested_by")
        .order_by("-requested_at", "-pk")
    )
    return [_file(file) for file in files[:_FILES_SHOWN]]


def _file(file: ReportFile) -> dict[str, Any]:
    question = Question.model_validate(file.question)
    return {
        "file": file,
        "format": FORMATS[file.format],
        "question": question,
        "by": BY[question.by].lower(),
        "done_percent": f"{min(100, 100 * file.rows_done // file.rows_of) if file.rows_of else 0}%",
    }


def unfinished(files: list[dict[str, Any]]) -> bool:
    return any(row["file"].state in (FileState.QUEUED, FileState.BUILDING) for row in files)


def file_in(project: Project | None, file_id: int) -> ReportFile:
    """A finished report of the project; 404 for any other."""
    file = ReportFile.objects.filter(project=project, pk=file_id, state=FileState.READY).first()
    if file is None:
        raise Http404("There is no such report in this project, or it has expired.")
    return file


def schedules_of(project: Project, today: date) -> list[dict[str, Any]]:
    schedules = _schedules(project).filter(stopped_at=None)
    return [
        {
            "schedule": schedule,
            "by": BY[schedule.by].lower(),
            "formats": ", ".join(FORMATS[key].word for key in schedule.formats),
            "to": ", ".join(readers_of(schedule)),
            "next": next_day(schedule, today),
            "sendings": schedule.latest,  # type: ignore[attr-defined]
        }
        for schedule in schedules.order_by("pk")
    ]


def _schedules(project: Project) -> QuerySet[Schedule]:
    """The project's schedules with their recipients, and in `latest` their last e-mails, newest first."""
    letters = Sending.objects.order_by("-first_day")[:_SENDINGS_SHOWN]
    latest = Prefetch("sendings", letters, to_attr="latest")
    return Schedule.objects.filter(project=project).prefetch_related("recipients", latest)


def readers_of(schedule: Schedule) -> list[str]:
    return sorted(person.email for person in schedule.recipients.all())


def schedule_in(project: Project, schedule_id: int) -> Schedule:
    return or_404(_schedules(project).filter(pk=schedule_id).first(), "schedule")


def bill_in(project: Project, bill_id: int) -> CloudBill:
    return or_404(bills_of(project).filter(pk=bill_id).first(), "bill")


def bills_of(project: Project) -> QuerySet[CloudBill]:
    bills = CloudBill.objects.filter(project=project).select_related("imported_by").order_by("-since", "-pk")
    return bills.prefetch_related(
        Prefetch(
            "periods", BilledPeriod.objects.select_related("replaced_by").order_by("first_day", "account")
        ),
        Prefetch("replaced", BilledPeriod.objects.select_related("bill").order_by("bill_id")),
    )
