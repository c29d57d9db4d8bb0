"""Scheduled reports: one e-mail for each whole week or month, sent once.

The row of a period is created before its e-mail is sent, so no one gets it twice. If the mail server refuses it for
now, it is sent again. If the worker died while sending, it is unknown whether the e-mail left, and the page says so.
"""

from __future__ import annotations

import logging
import smtplib
import tempfile
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.urls import reverse

from webapp.accounts.models import Project, User
from webapp.accounts.queries import confirmed_people
from webapp.alerts import project_mail
from webapp.alerts.models import AlertKind, Severity
from webapp.alerts.senders.mail import NO_SERVER
from webapp.alerts.services import raise_alert
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database.storage_faults import storage_fault
from webapp.formatting import display_usd
from webapp.reports.columns import prices_sentence
from webapp.reports.files.formats import FORMATS, make
from webapp.reports.models import Every, Schedule, Sending, SendingState
from webapp.reports.report_builds import owner_name
from webapp.reports.report_query import DayRange, Question, month_before, week_before
from webapp.reports.table import Costs

log = logging.getLogger(__name__)

NO_MEMBERS = "No recipient is still a member of this project. Set it up again."
NO_CONFIRMED_ADDRESS = (
    "No recipient has confirmed an address. Each can do that on the account page, under e-mail."
)
UNSURE = (
    "The worker stopped while it was sending. It may have arrived or not; download the report on this page."
)
TRY_AGAIN_AFTER = timedelta(minutes=10)
MOST_ATTEMPTS = 6
_SENDING_FOR = timedelta(minutes=15)
_LARGEST_EMAIL_BYTES = 8_000_000


@transaction.atomic
def add_schedule(
    *,
    project: Project,
    user: User,
    every: str,
    by: str,
    prices: str,
    formats: Sequence[str],
    recipients: Sequence[User],
    clock: Clock = SYSTEM_CLOCK,
) -> Schedule:
    """Create a schedule that begins with the current period. Recipients are members of the project."""
    made = Schedule.objects.create(
        project=project,
        every=Every(every),
        by=by,
        prices=prices,
        formats=list(formats),
        created_by=user,
        created_at=clock.now(),
    )
    made.recipients.set(recipients)
    return made


@transaction.atomic
def change_schedule(
    schedule: Schedule, *, by: str, prices: str, formats: Sequence[str], recipients: Sequence[User]
) -> None:
    """Change the contents and recipients of later e-mails. How often stays: a sent week may begin on the first day of
    a month, and only one e-mail is sent for each first day."""
    Schedule.objects.filter(pk=schedule.pk).update(by=by, prices=prices, formats=list(formats))
    schedule.refresh_from_db()
    schedule.recipients.set(recipients)


def stop_schedule(schedule: Schedule, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Stop a schedule. What was sent stays on record. Stopping it twice changes nothing."""
    Schedule.objects.filter(pk=schedule.pk, stopped_at=None).update(stopped_at=clock.now())


def period_before(schedule: Schedule, today: date) -> DayRange:
    """The last whole period of the schedule's kind."""
    return week_before(today) if schedule.every == Every.WEEK else month_before(today)


def next_day(schedule: Schedule, today: date) -> date:
    """The day on which the next e-mail is due."""
    if schedule.every == Every.WEEK:
        return today + timedelta(days=7 - today.weekday())
    return (today.replace(day=1) + timedelta(days=32)).replace(day=1)


def send_due(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Send the e-mails that are due; returns how many were sent."""
    now = clock.now()
    unsure = Sending.objects.filter(state=SendingState.SENDING, since__lt=now - _SENDING_FOR)
    unsure.update(state=SendingState.FAILED, reason=UNSURE, since=now)
    sent = 0
    for schedule in Schedule.objects.filter(stopped_at=None).select_related("project").order_by("pk"):
        period = period_before(schedule, now.date())
        # The period in which the schedule was created counts: it ends after that.
        if period.end > schedule.created_at and (sending := _claim(schedule, period, now)):
            sent += _send(schedule, sending, period, clock)
    return sent


def _claim(schedule: Schedule, period: DayRange, now: datetime) -> Sending | None:
    """Claim this period's row for sending: a new one, or one that is due to be tried again. None if another has it."""
    known = Sending.objects.filter(schedule=schedule, first_day=period.first_day).first()
    if known is None:
        try:
            with transaction.atomic():
                return Sending.objects.create(
                    schedule=schedule, first_day=period.first_day, last_day=period.last_day, since=now
                )
        except IntegrityError:
            return None
    waiting = Sending.objects.filter(
        pk=known.pk, state=SendingState.WAITING, attempts=known.attempts, since__lte=now - TRY_AGAIN_AFTER
    )
    if not waiting.update(state=SendingState.SENDING, attempts=known.attempts + 1, since=now):
        return None
    known.refresh_from_db()
    return known


def _send(schedule: Schedule, sending: Sending, period: DayRange, clock: Clock) -> bool:
    state, reason = SendingState.SENT, ""
    try:
        _post(schedule, period, clock)
    except _Refused as error:
        state, reason = SendingState.FAILED, str(error)
    except project_mail.OverLimit as over:
        state, reason = SendingState.WAITING, str(over)
    except Exception as error:
        if (fault := storage_fault(error)) is not None:
            state, reason = SendingState.WAITING, f"{fault.why} It is tried again in ten minutes."
        elif isinstance(error, OSError | smtplib.SMTPException):
            last = sending.attempts >= MOST_ATTEMPTS
            state = SendingState.FAILED if last else SendingState.WAITING
            reason = f"The mail server refused it: {type(error).__name__}."
            reason += " It was tried for an hour." if last else " It is tried again in ten minutes."
        else:
            log.exception("scheduled report %s", schedule.pk)
            state, reason = SendingState.FAILED, f"It could not be built ({type(error).__name__})."
    Sending.objects.filter(pk=sending.pk).update(state=state, reason=reason, since=clock.now())
    if state == SendingState.FAILED:
        _raise_alert(schedule, period, reason, clock)
    return state == SendingState.SENT


class _Refused(Exception):
    """Trying again would not help; the message says why."""


def _post(schedule: Schedule, period: DayRange, clock: Clock) -> None:
    people = schedule.recipients.filter(is_active=True, memberships__project=schedule.project)
    if not people.exists():
        raise _Refused(NO_MEMBERS)
    to = sorted(set(confirmed_people(people).values_list("email", flat=True)))
    if not to:
        raise _Refused(NO_CONFIRMED_ADDRESS)
    if not can_send():
        raise _Refused(NO_SERVER)
    project = schedule.project
    question = Question(
        project=project.pk,
        first_day=period.first_day,
        last_day=period.last_day,
        by=schedule.by,
        prices=schedule.prices,
    )
    total = Costs(question).total
    letter = EmailMessage(
        subject=f"Starling: {' '.join(project.name.split())} cost {display_usd(total)}, {period}",
        body=_body(schedule, question, total),
        to=to,
        headers={"Auto-Submitted": "auto-generated"},
    )
    _attach(letter, schedule, question, clock)
    project_mail.post(project.pk, letter, clock)


def can_send() -> bool:
    """Whether e-mails leave this installation, rather than becoming files."""
    return settings.EMAIL_BACKEND != "django.core.mail.backends.filebased.EmailBackend"


def _body(schedule: Schedule, question: Question, total: int) -> str:
    project = schedule.project
    address = reverse("reports:page", args=[project.slug])
    query = f"?from={question.first_day}&to={question.last_day}&by={question.by}&prices={question.prices}"
    return (
        f"{project.name} cost {display_usd(total)} from {question.first_day} to {question.last_day} (UTC).\n"
        f"{prices_sentence(question)}.\n\n"
        f"The whole report: {settings.STARLING_BASE_URL}{address}{query}\n\n"
        f"You get this {schedule.get_every_display().lower()}. Editors of the project can stop it on that page.\n"
    )


def _attach(letter: EmailMessage, schedule: Schedule, question: Question, clock: Clock) -> None:
    """Attach the files, up to the size that mail servers are likely to accept."""
    size = 0
    with tempfile.TemporaryDirectory(prefix="starling-report-") as place:
        for key in schedule.formats:
            chosen = FORMATS[key]
            path = Path(place) / f"report{chosen.suffix}"
            make(question, key, path, whose=owner_name(schedule.project), made_at=clock.now())
            size += path.stat().st_size
            if size > _LARGEST_EMAIL_BYTES:
                letter.body += f"\nThe {chosen.word} file is too large for an e-mail. The page has it.\n"
                continue
            name = chosen.name_of_file(question, schedule.project.slug)
            letter.attach(name, path.read_bytes(), chosen.content_type.partition(";")[0])


def _raise_alert(schedule: Schedule, period: DayRange, reason: str, clock: Clock) -> None:
    raise_alert(
        project_id=schedule.project_id,
        kind=AlertKind.REPORT,
        subject=f"Report of {period}",
        sentence=f"The report of {period} was not sent. {reason}",
        severity=Severity.WARNING,
        dedupe_key=f"schedule-{schedule.pk}-{period.first_day}",
        clock=clock,
    )
