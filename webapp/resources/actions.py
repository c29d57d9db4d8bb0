"""What follows from a decision: each deed is one transaction on its row, and only then a request to the cloud."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection, transaction

from cloud.reconciling import Decision, RegisteredResource
from cloud.register import Finder, Found, run_of
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.models import Connection
from webapp.jobs.models import Job
from webapp.resources import late_rent, notices
from webapp.resources.models import OVER, Holding, HoldingKind, State
from webapp.resources.register import held


def carry_out(
    decision: Decision, row: Holding | None, there: Connection, finder: Finder, *, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Do what was decided, if the row still is as it was found. May raise what the cloud raises; then look again."""
    match decision.action:
        case "leave" | "wait":
            _note_whether_seen(row, decision, clock)
        case "stands":
            _stands(row, decision, clock)
        case "gone" | "lost":
            _is_over(row, decision, clock)
            if decision.action == "gone" and row is not None and row.kind == HoldingKind.CONTAINER_GROUP:
                # One that ended by itself costs nothing, and counts for the account's limits until it is deleted.
                finder.end(Found(row.name, "container_group", row.provider_id, there.pk))
        case "end":
            assert decision.found is not None
            if _is_to_end(row, decision, there, clock):
                finder.end(decision.found)


def registered_resource(row: Holding, is_held: bool) -> RegisteredResource:
    """The row as the comparison wants it."""
    return RegisteredResource(
        name=row.name,
        kind=HoldingKind(row.kind).value,
        state=State(row.state).value,
        held=is_held,
        intended_unix_s=row.intended_at.timestamp(),
        since_unix_s=row.since.timestamp(),
        expires_unix_s=row.expires_at.timestamp(),
        missing_since_unix_s=row.missing_since.timestamp() if row.missing_since else None,
    )


def _note_whether_seen(row: Holding | None, decision: Decision, clock: Clock) -> None:
    if row is None or row.state in OVER:
        return
    still = Holding.objects.filter(pk=row.pk, state=row.state)
    if decision.found is not None:
        still.exclude(missing_since=None).update(missing_since=None)
    else:
        still.filter(missing_since=None).update(missing_since=clock.now())


def _stands(row: Holding | None, decision: Decision, clock: Clock) -> None:
    assert row is not None
    assert decision.found is not None
    Holding.objects.filter(pk=row.pk, state=State.INTENDED).update(
        state=State.STANDING,
        provider_id=decision.found.provider_id,
        since=clock.now(),
        missing_since=None,
    )


@transaction.atomic
def _is_over(row: Holding | None, decision: Decision, clock: Clock) -> None:
    """It is not there: what it cost beyond what was paid is booked to its job."""
    assert row is not None
    locked = _locked(row)
    if locked is None or locked.state != row.state:
        return
    never_came = locked.state == State.INTENDED
    now = clock.now()
    locked.state = State.GONE if decision.action == "gone" else State.LOST
    locked.reason, locked.since, locked.ended_at = decision.reason, now, now
    locked.save()
    late = 0 if never_came else late_rent.book(locked, locked.missing_since or now, clock=clock)
    notices.is_over(locked, clock)
    if decision.action == "lost":
        notices.on_job(
            locked, f"No longer in the cloud: {notices.called(locked)}. Nobody here ended it.", clock
        )
    elif late:
        notices.on_job(
            locked,
            f"Ended in the cloud: {notices.called(locked)}. What it cost after its run is on the bill.",
            clock,
        )


@transaction.atomic
def _is_to_end(row: Holding | None, decision: Decision, there: Connection, clock: Clock) -> bool:
    """Write that its end is asked for; not if somebody came to want it meanwhile."""
    now = clock.now()
    if row is None:
        assert decision.found is not None
        notices.left_over(_stray(decision.found, decision.reason, there, now), decision.reason, clock)
        return True
    locked = _locked(row)
    if locked is None or locked.state != row.state or _is_wanted(locked, now, clock):
        return False
    orphan = locked.state in (State.INTENDED, State.STANDING)
    locked.state, locked.reason, locked.since = State.ENDING, decision.reason, now
    locked.ended_at, locked.missing_since = None, None
    if decision.found is not None and not locked.provider_id:
        locked.provider_id = decision.found.provider_id
    locked.save()
    if orphan:
        notices.left_over(locked, decision.reason, clock)
    return True


def _is_wanted(row: Holding, now: datetime, clock: Clock) -> bool:
    return (
        row.state in (State.INTENDED, State.STANDING)
        and row.expires_at > now
        and Holding.objects.filter(held(clock.shared_now()), pk=row.pk).exists()
    )


def _stray(found: Found, reason: str, there: Connection, now: datetime) -> Holding:
    """A row for what no row knew, under the run that its tags name, if that is one of this project's."""
    run = run_of(found.run)
    job = Job.objects.filter(pk=run[0], project_id=there.project_id).first() if run else None
    created = datetime.fromtimestamp(found.created_unix_s, UTC) if found.created_unix_s else now
    return Holding.objects.create(
        connection=there,
        job=job,
        epoch=run[1] if run and job else 0,
        kind=found.kind,
        name=found.name,
        provider_id=found.provider_id,
        state=State.ENDING,
        reason=reason,
        facts=dict(found.facts),
        intended_at=min(created, now),
        since=now,
        expires_at=now,
    )


def _locked(row: Holding) -> Holding | None:
    rows = Holding.objects.filter(pk=row.pk).select_related("job", "connection")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(of=("self",))
    return rows.first()
