"""Scans running jobs for anomalies: gathers each job's facts, applies the rules, raises and ends alerts."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import QuerySet, Sum

from cloud.forecast import NoForecast
from training.calls import KINDS
from webapp.alerts import anomalies, services
from webapp.alerts.anomalies import Facts
from webapp.alerts.models import About, Alert, State
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import Observed
from webapp.jobs.launch import forecasts
from webapp.jobs.models import Event, EventKind, Job, Round
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.money.models import Charge, ChargeState

log = logging.getLogger(__name__)

_CALLS_WINDOW = timedelta(minutes=5)
_STEPS_WINDOW = timedelta(minutes=10)
_EVENTS_LOOKED_AT = 5_000
_ROUNDS_LOOKED_AT = 500
_ROUNDS_OF_CALLS = 50
_LEAST_ROUNDS = 3


def scan_jobs(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Raise alerts for anomalies of running jobs and end those that are over. Returns the number of findings."""
    standing: dict[str, set[str]] = {}
    running: set[str] = set()
    for subject, kind in _open_anomalies().values_list("subject", "kind"):
        standing.setdefault(subject, set()).add(kind)
    found = 0
    for job in Job.objects.filter(observed=Observed.RUNNING).select_related("account"):
        subject = About.JOB.subject(job.pk)
        running.add(subject)
        facts = facts_of(job, clock.now(), frozenset(standing.get(subject, ())))
        for finding in anomalies.findings(facts):
            found += 1
            standing.get(subject, set()).discard(finding.kind)
            services.raise_alert(
                project_id=job.project_id,
                kind=finding.kind,
                subject=subject,
                sentence=finding.sentence,
                severity=finding.severity,
                dedupe_key=f"{subject}:{finding.kind}",
                clock=clock,
            )
    passed = {f"{subject}:{kind}" for subject, kinds in standing.items() for kind in kinds}
    for alert in _open_anomalies().filter(dedupe_key__in=passed):
        services.resolve_alert(
            project_id=alert.project_id,
            dedupe_key=alert.dedupe_key,
            words=anomalies.OVER[alert.kind] if alert.subject in running else anomalies.ENDED,
            clock=clock,
        )
    return found


def facts_of(job: Job, now: datetime, standing: frozenset[str] = frozenset()) -> Facts:
    """The facts of a job for the rules."""
    recent = Event.objects.filter(
        job=job,
        kind=EventKind.CALL_FAILED,
        seq__gt=job.last_seq - _EVENTS_LOOKED_AT,
        at__gte=now - _CALLS_WINDOW,
    )
    settled = Charge.objects.filter(
        account=job.account,
        kind__in=[kind.name for kind in KINDS.values() if kind.role == "sampling"],
        state=ChargeState.SETTLED,
        round_no__gte=job.round_no - _ROUNDS_OF_CALLS,
        resolved_at__gte=now - _CALLS_WINDOW,
    )
    return Facts(
        name=job.name,
        limit_picodollars=job.account.limit_picodollars,
        unreal=bool(job.unreal),
        expected_picodollars_per_s=expected_rate(job),
        burn_picodollars_per_s=burn_rate(job),
        failed_calls=recent.count(),
        settled_calls=settled.count(),
        spent_since_steps_picodollars=_spent_without_steps(job, now),
        standing=standing,
    )


def expected_rate(job: Job) -> float | None:
    """Picodollars a second by the forecast of the job's spec. None without a forecast."""
    try:
        forecast = forecasts.forecast_of(job.parsed_spec())
    except (NoForecast, ValueError) as error:
        log.debug("no forecast to compare %s with: %s", job.pk, error)
        return None
    if forecast.minutes.p50 <= 0:
        return None
    return forecast.dollars.p50 * PICODOLLARS_PER_USD / (60 * forecast.minutes.p50)


def burn_rate(job: Job) -> float | None:
    """Picodollars a second over the last rounds, at least five minutes of the platform's time. None if too few."""
    rows = Round.objects.filter(job=job).order_by("-round_no")[:_ROUNDS_LOOKED_AT]
    last: tuple[float, int] | None = None
    for number, (started_s, total_s, spent) in enumerate(
        rows.values_list("report__started_s", "report__total_s", "report__spend__spent_picodollars")
    ):
        if spent is None:
            return None
        if last is None:
            last = (started_s + total_s, spent)
        span_s = last[0] - (started_s + total_s)
        if number >= _LEAST_ROUNDS and span_s >= anomalies.BURN_WINDOW_S:
            rate: float = (last[1] - spent) / span_s
            return rate
    return None


def _spent_without_steps(job: Job, now: datetime) -> int:
    """Picodollars settled in the last ten minutes, if no round ended and no call returned a step in them. Else 0."""
    begins = now - _STEPS_WINDOW
    if job.started_at is None or job.started_at > begins:
        return 0
    if Round.objects.filter(job=job, round_no=job.round_no, at__gte=begins).exists():
        return 0
    settled = Charge.objects.filter(
        account=job.account, state=ChargeState.SETTLED, round_no__gte=job.round_no, resolved_at__gte=begins
    )
    if settled.filter(usage__env_steps__gt=0).exists():
        return 0
    total: int = settled.aggregate(total=Sum("settled_picodollars", default=0))["total"]
    return total


def _open_anomalies() -> QuerySet[Alert]:
    return Alert.objects.filter(kind__in=anomalies.WATCHED).exclude(state=State.RESOLVED)
