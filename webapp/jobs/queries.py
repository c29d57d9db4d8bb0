"""Read-only queries of jobs for pages, sockets and reports.

Messages are those of the live page: a snapshot, then events in order without a gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, QuerySet

from training.tasks.kinds import declaration_of
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.http.responses import GoneObject, or_404
from webapp.jobs.billing.bill_panel import job_cap
from webapp.jobs.billing.burn_rate import forecast_spending
from webapp.jobs.charts.figures import point_of
from webapp.jobs.charts.history import series_of
from webapp.jobs.events import job_summary
from webapp.jobs.events.event_text import describe_event
from webapp.jobs.models import Event, EventKind, Job
from webapp.money.amounts import exact_usd
from webapp.money.models import RENT, Account, ChargeState

EVENTS_IN_SNAPSHOT = 50
EVENTS_AT_ONCE = 500
FURTHEST_BEHIND = 2_000
"""A viewer further behind than this gets a snapshot instead of the events."""
_FIGURES = (
    *(
        "name",
        "observed",
        "reason",
        "reason_code",
        "simulated",
        "emulated",
        "round_no",
        "total_progress",
        "actors",
    ),
    *("training_score", "evaluated_score", "platform_s"),
)
_MOMENTS = ("since", "started_at", "finished_at")


def job_list(project: Project) -> QuerySet[Job]:
    """Return the project's jobs with their accounts, newest first."""
    rows = Job.objects.filter(project=project, deleted_at=None).select_related("account", "created_by")
    return rows.order_by("-created_at", "pk")


def job_in(project: Project, job_id: str) -> Job:
    """Return the project's job with this id. Http404 for any other; GoneObject for a deleted one."""
    rows = Job.objects.filter(project=project, pk=job_id)
    job = or_404(rows.select_related("account", "created_by", "project").first(), "job")
    if job.deleted_at is not None:
        day = f"{job.deleted_at:%-d %B %Y}"
        raise GoneObject(f"The job {job.name} was deleted on {day}. Its cost stays in the reports.")
    return job


def header(job: Job) -> dict[str, Any]:
    """Return the job's state, latest figures and sentences for the head of its page."""
    return {**figures(job), **sentences(job)}


def figures(job: Job) -> dict[str, Any]:
    """Return the part of the header that each live message carries."""
    return {
        "id": job.pk,
        **{name: getattr(job, name) for name in _FIGURES},
        **{name: _iso(getattr(job, name)) for name in _MOMENTS},
        **_money(job),
        "calls_in_flight": _calls_in_flight(job.account),
    }


def sentences(job: Job) -> dict[str, Any]:
    """Return the part of the header that takes several queries. Once a second is often enough for readers."""
    return {**forecast_spending(job, SYSTEM_CLOCK.now()), **job_summary.live_sentences(job)}


def _money(job: Job) -> dict[str, str]:
    account, cap = job.account, job_cap(job)
    spent = account.spent_picodollars + account.overrun_picodollars
    return {
        "spent_usd": exact_usd(spent),
        "reserved_usd": exact_usd(account.reserved_picodollars),
        "limit_usd": exact_usd(account.limit_picodollars),
        "free_usd": exact_usd(cap.free),
        "cap_usd": exact_usd(cap.total),
        "cap_because": cap.because,
    }


def _calls_in_flight(account: Account) -> int:
    return account.charges.filter(state=ChargeState.OPEN).exclude(kind=RENT).count()


def events_before(
    job: Job, seq: int | None = None, limit: int = EVENTS_IN_SNAPSHOT, *, rounds: bool = True
) -> list[dict[str, Any]]:
    """Return the last events (before number `seq`, if given), in order, with or without those of rounds."""
    rows = Event.objects.filter(job=job)
    rows = rows if seq is None else rows.filter(seq__lt=seq)
    rows = rows if rounds else rows.exclude(kind=EventKind.ROUND)
    return [_event(row, job) for row in reversed(rows.order_by("-seq")[:limit])]


def _event(row: Event, job: Job) -> dict[str, Any]:
    """Return an event for pages: its text, and of a round the figures that charts show."""
    message = {
        "seq": row.seq,
        "at": _iso(row.at),
        "kind": row.kind,
        "description": describe_event(row.kind, row.payload, job.declaration)._asdict(),
    }
    if row.kind == EventKind.ROUND:
        report = row.payload["report"]
        passed_s = (row.at - job.started_at).total_seconds() if job.started_at is not None else 0.0
        return {**message, "point": point_of(report, passed_s), "why": report["plan_reason"]}
    return {**message, "payload": row.payload}


def snapshot(job_id: str) -> dict[str, Any]:
    """Return everything a page starts from, as of the job's event number `seq`."""
    # No transaction (it would block writers on SQLite): the job's row limits what else is read.
    job = _with_account(job_id)
    return {
        "t": "snapshot",
        "seq": job.last_seq,
        "job": header(job),
        "series": series_of(job),
        "events": events_before(job, job.last_seq + 1),
    }


def events_message(job_id: str, after: int, *, with_sentences: bool = True) -> dict[str, Any] | None:
    """Return the events after number `after`, with the present header; None if there are none.

    Without `with_sentences` the sentences are left out if only rounds have ended; `header_message` sends them
    later.
    """
    rows = list(Event.objects.filter(job_id=job_id, seq__gt=after).order_by("seq")[:EVENTS_AT_ONCE])
    if not rows:
        return None
    job = _with_account(job_id)
    complete = with_sentences or any(row.kind != EventKind.ROUND for row in rows)
    return {
        "t": "events",
        "first": rows[0].seq,
        "last": rows[-1].seq,
        "events": [_event(row, job) for row in rows],
        "job": header(job) if complete else figures(job),
    }


def header_message(job_id: str) -> dict[str, Any]:
    """Return the present header with all sentences, after events that were sent without them."""
    return {"t": "header", "job": header(_with_account(job_id))}


def why_waiting(job_id: str) -> str:
    """Return why the job waits; empty if it does not."""
    return job_summary.why_waiting(_with_account(job_id), SYSTEM_CLOCK.now())


def last_seq(job_id: str) -> int:
    """Return the number of the job's last event."""
    return Job.objects.values_list("last_seq", flat=True).get(pk=job_id)


def event_number(text: str | None) -> int:
    """Return the number of a viewer's last event; 0 if it has none or the value is invalid."""
    return int(text) if text and text.isdecimal() and len(text) < 18 else 0


def needs_snapshot(after: int, last: int) -> bool:
    """Return whether a viewer at `after` has no events, is too far behind, or names an event that does not exist."""
    return after <= 0 or after > last or last - after > FURTHEST_BEHIND


def stream_messages(job: Job, after: int) -> list[dict[str, Any]]:
    """Return the messages that a socket would have sent since number `after`, for a page that polls."""
    if needs_snapshot(after, last_seq(job.pk)):
        return [snapshot(job.pk)]
    messages = []
    while message := events_message(job.pk, after):
        messages.append(message)
        after = message["last"]
    return messages


def _with_account(job_id: str) -> Job:
    return Job.objects.select_related("account").get(pk=job_id)


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None


TRAINING_KIND = F("spec__training__kind")
"""For queries that leave the spec out: `annotate(training_kind=TRAINING_KIND)`."""


@dataclass(frozen=True)
class Headings:
    """`worst` heads the least training return or the most training loss."""

    score: str
    worst: str
    progress: str
    actors: str
    rounds: str
    decimals: int


def headings_of(jobs: Iterable[Job]) -> Headings:
    """Return the words of the jobs' kind of training; words that are true of any kind if there are several."""
    declared = {job.declaration for job in jobs} or {declaration_of(None)}
    return Headings(
        score=_common({kind.score.name.capitalize() for kind in declared}, "Score"),
        worst=_common({"Least" if kind.score.higher_is_better else "Most" for kind in declared}, "Worst")
        + " training",
        progress=_common({kind.progress_unit.capitalize() for kind in declared}, "Progress"),
        actors=_common({f"{kind.actor_name.capitalize()}s" for kind in declared}, "Workers"),
        rounds=_common({f"{kind.round_name.capitalize()}s" for kind in declared}, "Rounds"),
        decimals=max(kind.score.decimals for kind in declared),
    )


def _common(words: set[str], of_any: str) -> str:
    return words.pop() if len(words) == 1 else of_any
