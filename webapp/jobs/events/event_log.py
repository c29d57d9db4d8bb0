"""Event rows, numbered without a gap, and state changes: both in one transaction with the change they
describe.

A run writes under its lease's epoch. A writer whose lease has been taken over gets LeaseLost, and nothing is
written. Changes that users request carry no epoch.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F

from webapp import doorbell
from webapp.clock import Clock
from webapp.database.leases import LeaseLost, held
from webapp.job_states import TERMINAL, require_allowed
from webapp.jobs.charts.figures import PACKING, packed
from webapp.jobs.models import Event, EventKind, Job
from webapp.jobs.reasons import StateChange

Changes = Mapping[str, Any]


class EventEntry(NamedTuple):
    """An event to write; its number and time are set on writing."""

    kind: str
    payload: dict[str, Any]


def note(text: str, kind: str = EventKind.NOTE, **facts: Any) -> EventEntry:
    """Return an event of the dashboard's own, with its text."""
    return EventEntry(kind, {"text": text, **facts})


def event_row(job_id: str, seq: int, at: datetime, entry: EventEntry, epoch: int | None = None) -> Event:
    """An event as it is stored."""
    row = Event(job_id=job_id, seq=seq, at=at, kind=entry.kind, payload=entry.payload, epoch=epoch)
    if entry.kind == EventKind.ROUND:
        report = entry.payload["report"]
        row.round_no, row.figures, row.packing = report["round_no"], packed(report, at), PACKING
    return row


@transaction.atomic
def append_events(
    job_id: str,
    entries: Sequence[EventEntry],
    *,
    clock: Clock,
    epoch: int | None = None,
    changes: Changes | None = None,
) -> int:
    """Write events and changes to the job's row; returns the number of the last event."""
    rows = _writable(job_id, epoch)
    if rows.update(last_seq=F("last_seq") + len(entries), **(changes or {})) != 1:
        raise LeaseLost(f"job {job_id} is no longer run under epoch {epoch}")
    last = Job.objects.values_list("last_seq", flat=True).get(pk=job_id)
    now = clock.now()
    first = last - len(entries) + 1
    rows_made = (event_row(job_id, first + at, now, entry, epoch) for at, entry in enumerate(entries))
    Event.objects.bulk_create(rows_made)
    doorbell.ring_on_commit(job_id, last)
    return last


@transaction.atomic
def transition(
    job_id: str,
    change: StateChange,
    *,
    clock: Clock,
    epoch: int | None = None,
    changes: Changes | None = None,
    before: Sequence[EventEntry] = (),
) -> None:
    """Change the state along the declared graph, with its event (after the entries in `before`).

    IllegalTransition if the graph has no such change. Terminal states never change.
    """
    to, code, sentence = change
    observed = Job.objects.select_for_update().values_list("observed", flat=True).get(pk=job_id)
    require_allowed(observed, to)
    now = clock.now()
    state: dict[str, Any] = {"observed": to, "reason_code": code, "reason": sentence, "since": now}
    if to in TERMINAL:
        state["finished_at"] = now
    entry = note(sentence or str(to.label), EventKind.STATE, observed=to.value, reason_code=code.value)
    append_events(job_id, [*before, entry], clock=clock, epoch=epoch, changes={**state, **(changes or {})})


def _writable(job_id: str, epoch: int | None) -> Any:
    return Job.objects.filter(pk=job_id) if epoch is None else held(Job, job_id, epoch)
