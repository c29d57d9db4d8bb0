"""Rounds written straight into the table: recording many one by one would take an hour."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from webapp.jobs.events.event_log import EventEntry, event_row
from webapp.jobs.models import Event, EventKind, Job


def store_rounds(job: Job, reports: Iterable[dict[str, Any]], at: datetime) -> None:
    """Store the events of these reports, after the job's last one."""
    first = Job.objects.values_list("last_seq", flat=True).get(pk=job.pk) + 1
    rows = [
        event_row(job.pk, seq, at, EventEntry(EventKind.ROUND, {"kind": "round", "report": report}), epoch=1)
        for seq, report in enumerate(reports, first)
    ]
    Event.objects.bulk_create(rows, batch_size=500)
    job.last_seq = first + len(rows) - 1
    job.save(update_fields=["last_seq"])
