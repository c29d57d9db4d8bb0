"""The rows of the list of jobs, cached by content: a page shows 50, and most have not changed since the last
request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from django.template.loader import render_to_string

from webapp.jobs.list.columns import Column
from webapp.jobs.models import Job
from webapp.jobs.reasons import look_of_job, reason_in_words
from webapp.tones import Pill

_KEPT = 4_000
"""Cached rows of one process, some kilobytes each."""


class Row(NamedTuple):
    """Everything that a row shows. `version` changes with the job: pages replace rows with another version."""

    job_id: str
    version: str
    address: str
    name: str
    unreal: str
    archived: bool
    reason: str
    pill: str
    cells: tuple[tuple[str, str], ...]


def render_rows(jobs: Iterable[Job], columns: Sequence[Column], jobs_url: str) -> list[str]:
    """Return the jobs' rows as HTML, in their order."""
    return [_render(_row(job, columns, jobs_url)) for job in jobs]


def _row(job: Job, columns: Sequence[Column], jobs_url: str) -> Row:
    account = job.account
    return Row(
        job_id=job.pk,
        version=f"{job.last_seq}/{account.spent_picodollars}/{account.reserved_picodollars}",
        address=f"{jobs_url}{job.pk}/",
        name=job.name,
        unreal=job.unreal,
        archived=job.archived_at is not None,
        reason=reason_in_words(job),
        pill=_pill(look_of_job(job)),
        cells=tuple((column.cell, column.text(job)) for column in columns),
    )


@lru_cache(_KEPT)
def _render(row: Row) -> str:
    return render_to_string("jobs/row.html", row._asdict())


@cache
def _pill(state: Pill) -> str:
    """Return a state's pill, cached: there are few states and many rows."""
    return render_to_string("jobs/pill.html", {"state": state})
