"""Alerts from the database: limits that were reached, and jobs that ended.

Each look raises what was not raised yet. Two looks at once do no harm, and one that dies takes back what it wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import CharField, Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast, Concat

from webapp.alerts import services, text
from webapp.alerts.models import About, Alert, AlertKind, AlertState, Severity
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.launch.launch_budget import free_for_next_round
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import STOPPED_BY_BUDGET
from webapp.money.models import Account, Budget, Crossing, CrossingKind

_NEWS_FOR = timedelta(days=1)
"""A job that ended longer ago is history, not news."""
_AT_ONCE = 200
_ENDS = {
    Observed.PAUSED: (AlertKind.JOB_STOPPED, Severity.WARNING),
    Observed.FAILED: (AlertKind.JOB_FAILED, Severity.CRITICAL),
    Observed.SUCCEEDED: (AlertKind.JOB_FINISHED, Severity.INFO),
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
            state=AlertState.RESOLVED
        ):
            services.resolve_alert(
                project_id=project_id, dedupe_key=older.dedupe_key, silently=True, clock=clock
            )
    services.raise_alert(
        project_id=project_id,
        kind=AlertKind.FORECAST if forecast else AlertKind.BUDGET,
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

    The jobs of a group, as the seeds of one launch, have one alert for all that failed, one for all that met their
    budget, and one when the last of them has ended.
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
    fallen = [each for each in _fallen_members(clock.now()) if each.news][:_AT_ONCE]
    for members in fallen:
        _raise_fallen(members, clock)
    groups = _groups_without_alert(clock.now())[:_AT_ONCE]
    for key, group in groups:
        services.raise_alert(
            project_id=group.project_id,
            kind=AlertKind.JOB_FINISHED,
            subject=About.GROUP.subject(group.pk),
            sentence=text.group_end_sentence(group),
            severity=Severity.INFO,
            dedupe_key=key,
            clock=clock,
        )
    return len(ended) + len(fallen) + len(groups)


@dataclass
class _FallenMembers:
    """The jobs of a group that lately failed, or that lately met their budget.

    `ends` are the keys of these ends, `news` those that no alert covers.
    """

    group_id: int
    observed: Observed
    ends: set[str]
    news: set[str]

    @property
    def key(self) -> str:
        return f"{About.GROUP.subject(self.group_id)}:{self.observed.value}"


def _fallen_members(now: datetime) -> list[_FallenMembers]:
    """Groups with jobs that lately failed or met their budget. A job in several groups counts in the newest."""
    fell = _ended_lately(now).filter(STOPPED_BY_BUDGET | Q(observed=Observed.FAILED), groups__isnull=False)
    fallen: dict[str, _FallenMembers] = {}
    for job in fell.annotate(group_id=Max("groups")).only("pk", "observed").order_by("pk"):
        members = _FallenMembers(job.group_id, Observed(job.observed), set(), set())
        fallen.setdefault(members.key, members).ends.add(job.end_key)
    covered: dict[str, set[str]] = {}
    for key, ends in Alert.objects.filter(dedupe_key__in=fallen).values_list("dedupe_key", "covers"):
        covered.setdefault(key, set()).update(ends)
    for key, members in fallen.items():
        members.news = members.ends - covered.get(key, set())
    return list(fallen.values())


@transaction.atomic
def _raise_fallen(members: _FallenMembers, clock: Clock) -> None:
    """Raise the alert of a group's jobs, or update the one that was sent within a day."""
    group = JobGroup.objects.get(pk=members.group_id)
    kind, severity = _ENDS[members.observed]
    project_id, sent = group.project_id, Alert.objects.filter(dedupe_key=members.key)
    if sent.filter(told_at__lt=clock.now() - _NEWS_FOR).exclude(state=AlertState.RESOLVED).exists():
        services.resolve_alert(project_id=project_id, dedupe_key=members.key, silently=True, clock=clock)
    services.raise_alert(
        project_id=project_id,
        kind=kind,
        subject=About.GROUP.subject(group.pk),
        sentence=text.group_fallen_sentence(group, members.observed),
        severity=severity,
        dedupe_key=members.key,
        covers=sorted(members.ends),
        clock=clock,
    )


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
    keys = {f"{About.GROUP.subject(group.pk)}:{group.job_count}:{group.epochs}": group for group in counted}
    raised = set(Alert.objects.filter(dedupe_key__in=keys).values_list("dedupe_key", flat=True))
    return [(key, group) for key, group in keys.items() if key not in raised]


def _jobs_without_alert(now: datetime) -> QuerySet[Any]:
    """Jobs without a group that ended without an alert so far."""
    ends = STOPPED_BY_BUDGET | Q(observed__in=(Observed.FAILED, Observed.SUCCEEDED))
    raised = Alert.objects.filter(project_id=OuterRef("project_id"), dedupe_key=OuterRef("end_key"))
    return _ended_lately(now).filter(ends, ~Exists(raised), groups=None).defer("spec").order_by("since")


def _ended_lately(now: datetime) -> QuerySet[Any]:
    """Jobs whose state is news, each with the key of its end. The epoch of the lease identifies a run."""
    key = Concat(
        Value(About.JOB.subject("")),
        F("pk"),
        Value(":"),
        F("observed"),
        Value(":"),
        Cast("lease_epoch", CharField()),
    )
    return Job.objects.filter(since__gte=now - _NEWS_FOR).annotate(end_key=key)


# What is over


def end_outdated(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """End alerts of limits that were raised or reset, and of jobs that resumed. Returns how many."""
    unresolved = Alert.objects.exclude(state=AlertState.RESOLVED)
    stopped = unresolved.filter(kind=AlertKind.JOB_STOPPED)
    passed = [(alert, text.GOES_ON) for alert in stopped if not _stopped_jobs(alert).exists()]
    for alert in unresolved.filter(kind__in=(AlertKind.BUDGET, AlertKind.FORECAST)):
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
    row = table.objects.filter(pk=parts[2]).first()
    if row is None:
        return "That limit was removed."
    if isinstance(row, Budget) and row.closed_at is not None:
        return "The budget was closed."
    return text.rearmed_sentence(row) if row.arming != int(parts[5]) else ""


def end_stops_with_room(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """End alerts of jobs that their budget stopped and whose next round fits again: after a correction, in a new month,
    once other jobs gave back what was set aside for them. Returns how many.
    """
    passed = 0
    for alert in Alert.objects.filter(kind=AlertKind.JOB_STOPPED).exclude(state=AlertState.RESOLVED):
        now = clock.now()
        free = [free_for_next_round(job, now) for job in _stopped_jobs(alert).select_related("account")]
        if free and all(free):
            passed += services.resolve_alert(
                project_id=alert.project_id,
                dedupe_key=alert.dedupe_key,
                words=text.room_again_sentence(free),
                clock=clock,
            )
    return passed


def _stopped_jobs(alert: Alert) -> QuerySet[Job]:
    """The jobs of the alert that are still stopped by their budget."""
    about, _, which = alert.subject.partition(":")
    return Job.objects.filter(STOPPED_BY_BUDGET, **{"groups" if about == About.GROUP else "pk": which})
