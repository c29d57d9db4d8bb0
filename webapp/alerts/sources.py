"""Alerts from the database: limits that were reached, and jobs that ended.

Each look raises what was not raised yet. Two looks at once do no harm, and one that dies takes back what it wrote.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import CharField, Count, Exists, F, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast, Concat

from webapp.alerts import services, text
from webapp.alerts.models import About, Alert, Kind, Severity, State
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import STOPPED_BY_BUDGET
from webapp.money.models import Account, Budget, Crossing, CrossingKind

_NEWS_FOR = timedelta(days=1)
"""A job that ended longer ago is history, not news."""
_AT_ONCE = 200
_ENDS = {
    Observed.PAUSED: (Kind.JOB_STOPPED, Severity.WARNING),
    Observed.FAILED: (Kind.JOB_FAILED, Severity.CRITICAL),
    Observed.SUCCEEDED: (Kind.JOB_FINISHED, Severity.INFO),
}


# Limits


def raise_crossings(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Raise an alert for each limit with a new crossing, for its largest share. Returns how many."""
    new = Crossing.objects.filter(handled_at=None)
    if not new.exists():
        return 0
    with transaction.atomic():
        rows = list(new.select_for_update(skip_locked=True, of=("self",)).order_by("at", "pk")[:_AT_ONCE])
        largest: dict[tuple[str, str], Crossing] = {}
        for row in rows:
            key = (_limit_key(row), row.kind)
            if key not in largest or row.threshold > largest[key].threshold:
                largest[key] = row
        for row in largest.values():
            _raise_crossing(row, clock)
        Crossing.objects.filter(pk__in=[row.pk for row in rows]).update(handled_at=clock.now())
    return len(largest)


def _raise_crossing(row: Crossing, clock: Clock) -> None:
    """Raise the alert of a crossing. Each limit has one open alert: the new one replaces it."""
    one = row.account or row.budget
    assert one is not None
    project_id = one.job.project_id if isinstance(one, Account) else one.project_id
    forecast = row.kind == CrossingKind.FORECAST
    if not forecast:
        for older in Alert.objects.filter(_about(_limit_key(row)), Q(project_id=project_id)).exclude(
            state=State.RESOLVED
        ):
            services.resolve_alert(
                project_id=project_id, dedupe_key=older.dedupe_key, silently=True, clock=clock
            )
    services.raise_alert(
        project_id=project_id,
        kind=Kind.FORECAST if forecast else Kind.BUDGET,
        subject=About.JOB.subject(one.job_id) if isinstance(one, Account) else About.BUDGET.subject(one.pk),
        sentence=text.crossing_sentence(row),
        severity=_severity(row),
        dedupe_key=f"{_limit_key(row)}{row.kind}:{row.threshold}:{row.arming}",
        clock=clock,
    )


def _severity(row: Crossing) -> Severity:
    if row.kind == CrossingKind.FORECAST:
        return Severity.WARNING
    if row.threshold >= 100:
        return Severity.CRITICAL
    return Severity.WARNING if row.threshold >= 80 else Severity.INFO


def _limit_key(row: Crossing) -> str:
    return f"limit:account:{row.account_id}:" if row.account_id else f"limit:budget:{row.budget_id}:"


def _about(limit_key: str) -> Q:
    return Q(dedupe_key__startswith=limit_key)


# Jobs


def raise_job_ends(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Raise an alert for each job that failed, finished or met its budget and has none. Returns how many.

    The jobs of a group, as the seeds of one launch, finish with one alert, once the last of them has ended.
    """
    ended = list(_jobs_without_alert(clock.now())[:_AT_ONCE])
    for job in ended:
        kind, severity = _ENDS[Observed(job.observed)]
        services.raise_alert(
            project_id=job.project_id,
            kind=kind,
            subject=About.JOB.subject(job.pk),
            sentence=text.end_sentence(job),
            severity=severity,
            dedupe_key=job.end_key,
            clock=clock,
        )
    groups = _groups_without_alert(clock.now())[:_AT_ONCE]
    for key, group in groups:
        services.raise_alert(
            project_id=group.project_id,
            kind=Kind.JOB_FINISHED,
            subject=About.GROUP.subject(group.pk),
            sentence=text.group_end_sentence(group),
            severity=Severity.INFO,
            dedupe_key=key,
            clock=clock,
        )
    return len(ended) + len(groups)


def _groups_without_alert(now: datetime) -> list[tuple[str, JobGroup]]:
    """Groups whose last job has ended, one of them finished, without an alert so far; each with its alert's key. The
    number of jobs and the epochs of their leases identify what was run: more seeds and resumed jobs are news again.
    """
    finished = Job.objects.filter(
        observed=Observed.SUCCEEDED, since__gte=now - _NEWS_FOR, groups=OuterRef("pk")
    )
    still = Job.objects.filter(observed__in=ACTIVE, groups=OuterRef("pk"))
    ended = JobGroup.objects.filter(Exists(finished), ~Exists(still))
    counted = ended.annotate(job_count=Count("jobs"), epochs=Sum("jobs__lease_epoch")).order_by("pk")
    keys = {f"{About.GROUP.subject(one.pk)}:{one.job_count}:{one.epochs}": one for one in counted}
    raised = set(Alert.objects.filter(dedupe_key__in=keys).values_list("dedupe_key", flat=True))
    return [(key, group) for key, group in keys.items() if key not in raised]


def _jobs_without_alert(now: datetime) -> QuerySet[Any]:
    """Jobs that ended without an alert so far. The epoch of the lease identifies a run."""
    key = Concat(
        Value(About.JOB.subject("")),
        F("pk"),
        Value(":"),
        F("observed"),
        Value(":"),
        Cast("lease_epoch", CharField()),
    )
    finished_alone = Q(observed=Observed.SUCCEEDED, groups=None)
    news = Job.objects.filter(
        STOPPED_BY_BUDGET | Q(observed=Observed.FAILED) | finished_alone, since__gte=now - _NEWS_FOR
    )
    raised = Alert.objects.filter(project_id=OuterRef("project_id"), dedupe_key=OuterRef("end_key"))
    return news.annotate(end_key=key).filter(~Exists(raised)).defer("spec").order_by("since")


# What is over


def end_outdated(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """End alerts of limits that were raised or reset, and of jobs that resumed. Returns how many."""
    unresolved = Alert.objects.exclude(state=State.RESOLVED)
    goes_on = unresolved.filter(kind=Kind.JOB_STOPPED).filter(~Exists(_paused_job()))
    passed = [(alert, "The job is no longer stopped.") for alert in goes_on]
    for alert in unresolved.filter(kind__in=(Kind.BUDGET, Kind.FORECAST)):
        words = _reset_sentence(alert)
        if words:
            passed.append((alert, words))
    for alert, words in passed:
        services.resolve_alert(
            project_id=alert.project_id, dedupe_key=alert.dedupe_key, words=words, clock=clock
        )
    return len(passed)


def _reset_sentence(alert: Alert) -> str:
    """The text of a limit that was raised or reset after the alert. Empty while the alert is valid."""
    parts = alert.dedupe_key.split(":")
    if len(parts) != 6 or parts[0] != "limit":
        return ""
    table = Account if parts[1] == "account" else Budget
    one = table.objects.filter(pk=parts[2]).first()
    if one is None:
        return "That limit was removed."
    if isinstance(one, Budget) and one.closed_at is not None:
        return "The budget was closed."
    return text.rearmed_sentence(one) if one.arming != int(parts[5]) else ""


def _paused_job() -> QuerySet[Job]:
    return (
        Job.objects.filter(STOPPED_BY_BUDGET)
        .annotate(subject=Concat(Value(About.JOB.subject("")), F("pk")))
        .filter(subject=OuterRef("subject"))
    )
