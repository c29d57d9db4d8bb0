"""Messages about resources: notes on the job's page, and alerts to the project."""

from __future__ import annotations

from webapp.alerts.models import About
from webapp.alerts.services import raise_alert, resolve_alert
from webapp.clock import Clock
from webapp.connections.models import Connection
from webapp.jobs.events.event_log import append_events, note
from webapp.resources.models import LIVE, Holding, HoldingKind

FAILURES_BEFORE_ALERT = 3


def alert_unused(row: Holding, reason: str, clock: Clock) -> None:
    """Report a resource that no run uses any more. It is being ended."""
    sentence = f"Unused cloud resource: {describe(row)}. {reason} It is being ended."
    add_job_note(row, sentence, clock)
    raise_alert(
        project_id=_project(row),
        kind="orphan",
        subject=About.JOB.subject(row.job_id) if row.job_id else About.CONNECTION.subject(row.connection_id),
        sentence=sentence,
        severity="warning",
        dedupe_key=f"standing:{row.pk}",
        clock=clock,
    )


def resolve_unused(row: Holding, clock: Clock) -> None:
    """Resolve the alert about this resource: it is gone."""
    resolve_alert(project_id=_project(row), dedupe_key=f"standing:{row.pk}", clock=clock)


def add_job_note(row: Holding, sentence: str, clock: Clock) -> None:
    """Add a note to the events of the resource's job, if it has one."""
    if row.job_id is not None:
        append_events(row.job_id, [note(sentence)], clock=clock)


def report_scan(connection: Connection, failures: int, sentence: str, clock: Clock) -> None:
    """Raise an alert after several failed scans of an account in which resources run; resolve it after a good scan."""
    key = f"unseen:{connection.pk}"
    if not sentence:
        resolve_alert(project_id=connection.project_id, dedupe_key=key, clock=clock)
    elif (
        failures >= FAILURES_BEFORE_ALERT
        and Holding.objects.filter(connection=connection, state__in=LIVE).exists()
    ):
        raise_alert(
            project_id=connection.project_id,
            kind="orphan",
            subject=About.CONNECTION.subject(connection.pk),
            sentence=f"Starling runs resources in {connection.name} and cannot check them. {sentence}",
            severity="critical",
            dedupe_key=key,
            clock=clock,
        )


def describe(row: Holding) -> str:
    """What the resource is, with its name."""
    kind = "warm functions" if row.kind == HoldingKind.PROVISIONED else "container group"
    return f"{kind} ({row.name})"


def _project(row: Holding) -> int | None:
    return row.connection.project_id if row.connection is not None else None
