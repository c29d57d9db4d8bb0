"""Carries out the decisions of a scan: one transaction on the row first, then the request to the cloud."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from django.db import connection as database
from django.db import transaction

from cloud.accounts.reconciling import Decision, RegisteredResource
from cloud.accounts.register import Finder, FoundResource, run_of
from cloud.accounts.register import Kind as RegisteredKind
from cloud.accounts.register import State as RegisteredState
from webapp.alerts.models import About
from webapp.alerts.services import raise_alert, resolve_alert
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.models import Connection
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.models import Job
from webapp.resources import late_rent
from webapp.resources.models import LIVE, OVER, Holding, HoldingKind, ResourceState
from webapp.resources.register import held

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
    resolve_alert(project_id=_project(row), dedupe_key=f"standing:{row.pk}", clock=clock)


def add_job_note(row: Holding, sentence: str, clock: Clock) -> None:
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
    kind = "warm functions" if row.kind == HoldingKind.PROVISIONED else "container group"
    return f"{kind} ({row.name})"


def _project(row: Holding) -> int | None:
    return row.connection.project_id if row.connection is not None else None


def carry_out(
    decision: Decision,
    row: Holding | None,
    connection: Connection,
    finder: Finder,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Do what was decided, unless the row has changed since. Raises what the cloud raises."""
    match decision.action:
        case "leave" | "wait":
            _update_missing_since(row, decision, clock)
        case "stands":
            _mark_running(row, decision, clock)
        case "gone" | "lost":
            _close(row, decision, clock)
            if decision.action == "gone" and row is not None and row.kind == HoldingKind.CONTAINER_GROUP:
                # An ended group costs nothing, but counts towards the account's limits until it is deleted.
                finder.end(FoundResource(row.name, "container_group", row.provider_id, connection.pk))
        case "end":
            assert decision.found is not None
            if _mark_ending(row, decision, connection, clock):
                finder.end(decision.found)


def registered_resource(row: Holding, is_held: bool) -> RegisteredResource:
    """The row in the form that `compare` takes."""
    return RegisteredResource(
        name=row.name,
        kind=cast(RegisteredKind, row.kind),
        state=cast(RegisteredState, row.state),
        held=is_held,
        intended_unix_s=row.intended_at.timestamp(),
        since_unix_s=row.since.timestamp(),
        expires_unix_s=row.expires_at.timestamp(),
        missing_since_unix_s=row.missing_since.timestamp() if row.missing_since else None,
    )


def _update_missing_since(row: Holding | None, decision: Decision, clock: Clock) -> None:
    if row is None or row.state in OVER:
        return
    still = Holding.objects.filter(pk=row.pk, state=row.state)
    if decision.found is not None:
        still.exclude(missing_since=None).update(missing_since=None)
    else:
        still.filter(missing_since=None).update(missing_since=clock.now())


def _mark_running(row: Holding | None, decision: Decision, clock: Clock) -> None:
    assert row is not None
    assert decision.found is not None
    Holding.objects.filter(pk=row.pk, state=ResourceState.INTENDED).update(
        state=ResourceState.EXISTS,
        provider_id=decision.found.provider_id,
        since=clock.now(),
        missing_since=None,
    )


@transaction.atomic
def _close(row: Holding | None, decision: Decision, clock: Clock) -> None:
    """Close the row of a resource that is gone, and book to its job what it cost beyond what was paid."""
    assert row is not None
    locked = _locked(row)
    if locked is None or locked.state != row.state:
        return
    never_came = locked.state == ResourceState.INTENDED
    now = clock.now()
    locked.state = ResourceState.GONE if decision.action == "gone" else ResourceState.LOST
    locked.reason, locked.since, locked.ended_at = decision.reason, now, now
    locked.save()
    late = 0 if never_came else late_rent.book(locked, locked.missing_since or now, clock=clock)
    resolve_unused(locked, clock)
    if decision.action == "lost":
        add_job_note(locked, f"No longer in the cloud: {describe(locked)}. Starling did not end it.", clock)
    elif late:
        add_job_note(
            locked,
            f"Ended in the cloud: {describe(locked)}. Its cost after the run is on the bill.",
            clock,
        )


@transaction.atomic
def _mark_ending(row: Holding | None, decision: Decision, connection: Connection, clock: Clock) -> bool:
    """Mark the resource as ending and return True; return False if a run holds it by now."""
    now = clock.now()
    if row is None:
        assert decision.found is not None
        alert_unused(
            _create_unregistered(decision.found, decision.reason, connection, now), decision.reason, clock
        )
        return True
    locked = _locked(row)
    if locked is None or locked.state != row.state or _is_wanted(locked, now, clock):
        return False
    orphan = locked.state in (ResourceState.INTENDED, ResourceState.EXISTS)
    locked.state, locked.reason, locked.since = ResourceState.ENDING, decision.reason, now
    locked.ended_at, locked.missing_since = None, None
    if decision.found is not None and not locked.provider_id:
        locked.provider_id = decision.found.provider_id
    locked.save()
    if orphan:
        alert_unused(locked, decision.reason, clock)
    return True


def _is_wanted(row: Holding, now: datetime, clock: Clock) -> bool:
    return (
        row.state in (ResourceState.INTENDED, ResourceState.EXISTS)
        and row.expires_at > now
        and Holding.objects.filter(held(clock.shared_now()), pk=row.pk).exists()
    )


def _create_unregistered(item: FoundResource, reason: str, connection: Connection, now: datetime) -> Holding:
    """Create a row for a resource that has none. Its job is the one that its tags name, if that is in this project."""
    run = run_of(item.run)
    job = Job.objects.filter(pk=run[0], project_id=connection.project_id).first() if run else None
    created = datetime.fromtimestamp(item.created_unix_s, UTC) if item.created_unix_s else now
    return Holding.objects.create(
        connection=connection,
        job=job,
        epoch=run[1] if run and job else 0,
        kind=item.kind,
        name=item.name,
        provider_id=item.provider_id,
        state=ResourceState.ENDING,
        reason=reason,
        facts=dict(item.facts),
        intended_at=min(created, now),
        since=now,
        expires_at=now,
    )


def _locked(row: Holding) -> Holding | None:
    rows = Holding.objects.filter(pk=row.pk).select_related("job", "connection")
    if database.features.has_select_for_update:
        rows = rows.select_for_update(of=("self",))
    return rows.first()
