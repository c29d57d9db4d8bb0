"""What people are told of what stands: on the job's page, and as alerts to the project."""

from __future__ import annotations

from webapp.alerts.models import About
from webapp.alerts.services import raise_alert, resolve_alert
from webapp.clock import Clock
from webapp.connections.models import Connection
from webapp.jobs.events.event_log import append_events, note
from webapp.resources.models import LIVE, Holding, HoldingKind

FAILURES_BEFORE_ALERT = 3


def left_over(row: Holding, reason: str, clock: Clock) -> None:
    """Something was found standing that nobody is there to end; it is being ended."""
    sentence = f"Left over in the cloud: {called(row)}. {reason} It is taken away."
    on_job(row, sentence, clock)
    raise_alert(
        project_id=_project(row),
        kind="orphan",
        subject=About.JOB.subject(row.job_id) if row.job_id else About.CONNECTION.subject(row.connection_id),
        sentence=sentence,
        severity="warning",
        dedupe_key=f"standing:{row.pk}",
        clock=clock,
    )


def is_over(row: Holding, clock: Clock) -> None:
    """Whatever was said of it is so no longer."""
    resolve_alert(project_id=_project(row), dedupe_key=f"standing:{row.pk}", clock=clock)


def on_job(row: Holding, sentence: str, clock: Clock) -> None:
    """A note among the events of the job that wanted it."""
    if row.job_id is not None:
        append_events(row.job_id, [note(sentence)], clock=clock)


def account_seen(there: Connection, failures: int, sentence: str, clock: Clock) -> None:
    """An account was looked at, or could not be for the `failures`-th time in a row while something stands there."""
    key = f"unseen:{there.pk}"
    if not sentence:
        resolve_alert(project_id=there.project_id, dedupe_key=key, clock=clock)
    elif (
        failures >= FAILURES_BEFORE_ALERT
        and Holding.objects.filter(connection=there, state__in=LIVE).exists()
    ):
        raise_alert(
            project_id=there.project_id,
            kind="orphan",
            subject=About.CONNECTION.subject(there.pk),
            sentence=f"Something of ours stands in {there.name} and cannot be looked after. {sentence}",
            severity="critical",
            dedupe_key=key,
            clock=clock,
        )


def called(row: Holding) -> str:
    return f"{HoldingKind(row.kind).label.lower()} ({row.name})"


def _project(row: Holding) -> int | None:
    return row.connection.project_id if row.connection is not None else None
