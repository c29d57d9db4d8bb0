"""What pages, sockets and reports read of jobs. Nothing here writes.

Messages are those of the live page: a snapshot, then events in order without a gap.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import Http404

from training.environments import catalogue
from webapp.charts import all_series
from webapp.charts.rows import EvaluationRow, RoundRow
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Event, EventKind, Job, Round
from webapp.money.amounts import PICODOLLARS_PER_USD, display_usd, exact_usd
from webapp.money.burning import burn_sentence
from webapp.money.models import Account, ChargeKind, ChargeState

EVENTS_IN_SNAPSHOT = 50
EVENTS_AT_ONCE = 500
FURTHEST_BEHIND = 2_000
"""A viewer further behind than this gets a snapshot instead of the events."""
POINTS_IN_CHART = 2_000


SORTS = {
    "started": F("created_at").desc(),
    "spent": (F("account__spent_picodollars") + F("account__overrun_picodollars")).desc(),
    "return": F("episode_return_mean").desc(nulls_last=True),
}
"""What the list may be sorted by, each with the most first."""


def job_list(project: Any, sort: str = "started") -> QuerySet[Job]:
    """The project's jobs, newest first if nothing else is asked for, with their accounts."""
    return (
        Job.objects.filter(project=project)
        .select_related("account", "created_by")
        .order_by(SORTS.get(sort, SORTS["started"]), "-created_at", "pk")
    )


def job_in(project: Any, job_id: str) -> Job:
    """The project's job of this id; 404 for one that is not there, or not this project's."""
    job = (
        Job.objects.filter(project=project, pk=job_id)
        .select_related("account", "created_by", "project")
        .first()
    )
    if job is None:
        raise Http404("There is no such job in this project.")
    return job


def header(job: Job) -> dict[str, Any]:
    """The job's state and latest figures, as the head of its page and each live message carry them."""
    return {
        "id": job.pk,
        "name": job.name,
        "observed": job.observed,
        "reason": job.reason,
        "reason_code": job.reason_code,
        "since": _iso(job.since),
        "simulated": job.simulated,
        "emulated": job.emulated,
        "round_no": job.round_no,
        "env_steps": job.env_steps,
        "actors": job.actors,
        "episode_return_mean": job.episode_return_mean,
        "evaluation_return_mean": job.evaluation_return_mean,
        **_money(job.account),
        "started_at": _iso(job.started_at),
        "finished_at": _iso(job.finished_at),
        "platform_s": job.platform_s,
        "calls_in_flight": _calls_in_flight(job.account),
        "burn": burn_sentence(job, SYSTEM_CLOCK.now()),
        "reached": reached_sentence(job),
    }


def reached_sentence(job: Job) -> str:
    """What it had cost when an evaluation first reached the environment's reference; empty if none has."""
    if job.evaluation_return_mean is None:
        return ""
    entry = catalogue.ENTRIES.get(job.spec["training"]["environment"]["id"])
    if entry is None or entry.reference_return is None:
        return ""
    reached = Event.objects.filter(
        job=job, kind=EventKind.EVALUATION, payload__return_mean__gte=entry.reference_return
    ).order_by("seq")
    round_no = reached.values_list("payload__round_no", flat=True).first()
    spent = (
        Round.objects.filter(job=job, round_no=round_no)
        .values_list("report__spend__spent_picodollars", flat=True)
        .first()
    )
    if spent is None:
        return ""
    return f"Reached {entry.reference_return:,.0f} in round {round_no:,} for {display_usd(spent)}."


def _money(account: Account) -> dict[str, str]:
    spent = account.spent_picodollars + account.overrun_picodollars
    return {
        "spent_usd": exact_usd(spent),
        "reserved_usd": exact_usd(account.reserved_picodollars),
        "limit_usd": exact_usd(account.limit_picodollars),
        "free_usd": exact_usd(max(0, account.limit_picodollars - spent - account.reserved_picodollars)),
    }


def _calls_in_flight(account: Account) -> int:
    return account.charges.filter(state=ChargeState.OPEN).exclude(kind=ChargeKind.RENT).count()


def events_after(job_id: str, seq: int, limit: int = EVENTS_AT_ONCE) -> list[dict[str, Any]]:
    """Events with a higher number, in order."""
    rows = Event.objects.filter(job_id=job_id, seq__gt=seq).order_by("seq")[:limit]
    return [_event(row) for row in rows]


def events_before(
    job_id: str, seq: int | None = None, limit: int = EVENTS_IN_SNAPSHOT
) -> list[dict[str, Any]]:
    """The last events (before number `seq`, if given), in order."""
    rows = Event.objects.filter(job_id=job_id)
    rows = rows if seq is None else rows.filter(seq__lt=seq)
    return [_event(row) for row in reversed(rows.order_by("-seq")[:limit])]


def _event(row: Event) -> dict[str, Any]:
    return {"seq": row.seq, "at": _iso(row.at), "kind": row.kind, "payload": row.payload}


def snapshot(job_id: str) -> dict[str, Any]:
    """Everything a page needs to start from, as it was when the job's last event had number `seq`."""
    # No transaction (it would hold up writers on SQLite): the job's row says how far everything else is to be read.
    job = _with_account(job_id)
    series = all_series(round_rows(job_id, job.round_no), evaluation_rows(job_id, job.last_seq))
    return {
        "t": "snapshot",
        "seq": job.last_seq,
        "job": header(job),
        "series": series,
        "events": events_before(job_id, job.last_seq + 1),
    }


def events_message(job_id: str, after: int) -> dict[str, Any] | None:
    """What came after number `after`, with the header as it is now; None if nothing did."""
    events = events_after(job_id, after)
    if not events:
        return None
    return {
        "t": "events",
        "first": events[0]["seq"],
        "last": events[-1]["seq"],
        "events": events,
        "job": header(_with_account(job_id)),
    }


def last_seq(job_id: str) -> int:
    """The number of the job's last event."""
    return Job.objects.values_list("last_seq", flat=True).get(pk=job_id)


def event_number(text: str | None) -> int:
    """The event a viewer says it has last; 0 for none, and for what is no number of an event."""
    return int(text) if text and text.isdecimal() and len(text) < 18 else 0


def needs_snapshot(after: int, last: int) -> bool:
    """Whether a viewer at `after` is better off starting anew: it has nothing, too little, or what never was."""
    return after <= 0 or after > last or last - after > FURTHEST_BEHIND


def stream_messages(job: Job, after: int) -> list[dict[str, Any]]:
    """What a polling page gets: the messages a socket would have sent since number `after`."""
    if needs_snapshot(after, last_seq(job.pk)):
        return [snapshot(job.pk)]
    messages = []
    while message := events_message(job.pk, after):
        messages.append(message)
        after = message["last"]
    return messages


def _with_account(job_id: str) -> Job:
    return Job.objects.select_related("account").get(pk=job_id)


_ROUND_FIGURES = (
    "round_no",
    "report__total_env_steps",
    "report__actors",
    "report__episode_return_mean",
    "report__started_s",
    "report__collect_s",
    "report__update_s",
    "report__total_s",
    "report__spend__spent_picodollars",
    "report__cost_picodollars",
)


def round_rows(job_id: str, last: int) -> list[RoundRow]:
    """The figures of the rounds up to number `last`, for charts; of a long run every n-th and the last."""
    rounds = Round.objects.filter(job_id=job_id, round_no__lte=last)
    every = -(-last // POINTS_IN_CHART)
    if every > 1:
        rounds = rounds.annotate(left=F("round_no") % every).filter(Q(left=0) | Q(round_no=last))
    return _as_rows(rounds.order_by("round_no").values_list(*_ROUND_FIGURES))


def _as_rows(values: Sequence[Any]) -> list[RoundRow]:
    rows, cost_so_far = [], 0
    for no, steps, actors, mean, started, collect, update, total, spent, cost in values:
        cost_so_far += cost or 0
        usd = (spent if spent is not None else cost_so_far) / PICODOLLARS_PER_USD
        rows.append(RoundRow(no, steps, actors, mean, started + total, collect, update, total, usd))
    return rows


def evaluation_rows(job_id: str, last_seq: int) -> list[EvaluationRow]:
    """The evaluations up to an event number, by round; those that a resume repeats are gone."""
    values = (
        Event.objects.filter(
            job_id=job_id, kind__in=(EventKind.EVALUATION, EventKind.RESUMED), seq__lte=last_seq
        )
        .order_by("seq")
        .values_list(
            "kind",
            "payload__round_no",
            "payload__total_env_steps",
            "payload__return_mean",
            "payload__from_round",
        )
    )
    by_round: dict[int, EvaluationRow] = {}
    for kind, no, steps, mean, from_round in values:
        if kind == EventKind.EVALUATION:
            by_round[no] = EvaluationRow(no, steps, mean)
        else:
            by_round = {known: row for known, row in by_round.items() if known <= from_round}
    return [by_round[no] for no in sorted(by_round)]


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
