"""Scans running jobs for anomalies: gathers each job's facts, applies the rules, raises and ends alerts.

A rule is pure: it returns a finding, or None. An open finding ends at a lower threshold than it begins, so that a
figure near the threshold does not raise two alerts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Sum

from training.calls import KINDS
from webapp.alerts import services
from webapp.alerts.models import About, Alert, AlertKind, AlertState, Severity
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd
from webapp.job_states import Observed
from webapp.jobs.billing.burn_rate import burn_of
from webapp.jobs.models import Event, EventKind, Job, Round
from webapp.money.models import Charge, ChargeState, LaunchForecast
from webapp.money.queries import cap_of

BURN_TIMES = 3.0
BURN_OVER_TIMES = 2.0
BURN_WINDOW_S = 300.0
RETRIES_AT_LEAST = 20
RETRIES_SHARE = 0.5
RETRIES_COUNT = 200
"""So many failed calls in a window are an anomaly on a cloud that bills, at any share: each retry is billed."""
NO_STEPS_SHARE = 0.02
_PER_HOUR = 3600


@dataclass(frozen=True)
class Facts:
    """Figures of a running job. Rates cover five minutes of the platform's time, counts those of the wall clock."""

    name: str
    limit_picodollars: int
    cap_picodollars: int
    """What it can cost at most, under its limit and the budgets above."""
    unreal: bool
    expected_picodollars_per_s: float | None = None
    burn_picodollars_per_s: float | None = None
    failed_calls: int = 0
    settled_calls: int = 0
    spent_since_steps_picodollars: int = 0
    open_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Anomaly:
    kind: AlertKind
    severity: Severity
    sentence: str


def burn(facts: Facts) -> Anomaly | None:
    """The job spends several times faster than forecast."""
    expected, seen = facts.expected_picodollars_per_s, facts.burn_picodollars_per_s
    if not expected or seen is None:
        return None
    times = seen / expected
    if times <= (BURN_OVER_TIMES if AlertKind.BURN in facts.open_kinds else BURN_TIMES):
        return None
    return Anomaly(
        AlertKind.BURN,
        Severity.WARNING,
        f"{facts.name} spends {display_usd(round(seen * _PER_HOUR))} an hour, {times:.1f} times what was forecast"
        f" ({display_usd(round(expected * _PER_HOUR))}). Look at its actors and failed calls, or stop it;"
        f" it cannot spend more than {display_usd(facts.cap_picodollars)} in all.",
    )


def retries(facts: Facts) -> Anomaly | None:
    """Calls fail and are paid for again: a large share of them, or a large number."""
    calls = facts.failed_calls + facts.settled_calls
    share = facts.failed_calls / calls if calls else 0.0
    many = not facts.unreal and facts.failed_calls >= RETRIES_COUNT
    line = RETRIES_SHARE / 2 if AlertKind.RETRIES in facts.open_kinds else RETRIES_SHARE
    if not many and (facts.failed_calls < RETRIES_AT_LEAST or share < line):
        return None
    return Anomaly(
        AlertKind.RETRIES,
        Severity.CRITICAL if share >= RETRIES_SHARE else Severity.WARNING,
        f"{facts.failed_calls:,} calls of {facts.name} failed in five minutes, {100 * share:.0f} % of all, and failed"
        " calls are paid for as well. The events on its page say why they fail; stop it if they go on.",
    )


def no_steps(facts: Facts) -> Anomaly | None:
    """The job spends money without a training step."""
    spent = facts.spent_since_steps_picodollars
    if spent < max(1, NO_STEPS_SHARE * facts.limit_picodollars):
        return None
    return Anomaly(
        AlertKind.NO_STEPS,
        Severity.CRITICAL,
        f"{facts.name} has spent {display_usd(spent)} in the last ten minutes without a single step of training."
        " Look at its events, or stop it before more is lost.",
    )


RULES: tuple[Callable[[Facts], Anomaly | None], ...] = (burn, retries, no_steps)
OVER: dict[str, str] = {
    AlertKind.BURN: "It spends about as forecast again.",
    AlertKind.RETRIES: "Its calls succeed again.",
    AlertKind.NO_STEPS: "It makes steps again.",
}
WATCHED = frozenset(OVER)
ENDED = "The job is no longer running."


def findings(facts: Facts) -> list[Anomaly]:
    return [finding for rule in RULES if (finding := rule(facts)) is not None]


_CALLS_WINDOW = timedelta(minutes=5)
_STEPS_WINDOW = timedelta(minutes=10)
_EVENTS_LOOKED_AT = 5_000
_ROUNDS_OF_CALLS = 50


def scan_jobs(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Raise alerts for anomalies of running jobs and end those that are over. Returns the number of findings."""
    open_kinds: dict[str, set[str]] = {}
    running: set[str] = set()
    for subject, kind in _open_anomalies().values_list("subject", "kind"):
        open_kinds.setdefault(subject, set()).add(kind)
    count = 0
    for job in Job.objects.filter(observed=Observed.RUNNING).select_related("account"):
        subject = About.JOB.subject(job.pk)
        running.add(subject)
        facts = facts_of(job, clock.now(), frozenset(open_kinds.get(subject, ())))
        for finding in findings(facts):
            count += 1
            open_kinds.get(subject, set()).discard(finding.kind)
            services.raise_alert(
                project_id=job.project_id,
                kind=finding.kind,
                subject=subject,
                sentence=finding.sentence,
                severity=finding.severity,
                dedupe_key=f"{subject}:{finding.kind}",
                clock=clock,
            )
    passed = {f"{subject}:{kind}" for subject, kinds in open_kinds.items() for kind in kinds}
    for alert in _open_anomalies().filter(dedupe_key__in=passed):
        services.resolve_alert(
            project_id=alert.project_id,
            dedupe_key=alert.dedupe_key,
            words=OVER[alert.kind] if alert.subject in running else ENDED,
            clock=clock,
        )
    return count


def facts_of(job: Job, now: datetime, open_kinds: frozenset[str] = frozenset()) -> Facts:
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
    burn = burn_of(job)
    return Facts(
        name=job.name,
        limit_picodollars=job.account.limit_picodollars,
        cap_picodollars=cap_of(job.account, now).total,
        unreal=bool(job.unreal),
        expected_picodollars_per_s=expected_rate(job),
        burn_picodollars_per_s=burn.rate.ratio
        if burn is not None and burn.rate.over >= BURN_WINDOW_S
        else None,
        failed_calls=recent.count(),
        settled_calls=settled.count(),
        spent_since_steps_picodollars=_spent_without_steps(job, now),
        open_kinds=open_kinds,
    )


def expected_rate(job: Job) -> float | None:
    """Picodollars a second by the forecast that was stored at launch. None without one."""
    row = LaunchForecast.objects.filter(job=job).values("cost_p50_picodollars", "time_p50_s").first()
    if row is None or row["time_p50_s"] <= 0:
        return None
    return float(row["cost_p50_picodollars"] / row["time_p50_s"])


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
    if settled.filter(Q(("usage__env_steps__gt", 0))).exists():
        return 0
    total: int = settled.aggregate(total=Sum("settled_picodollars", default=0))["total"]
    return total


def _open_anomalies() -> QuerySet[Alert]:
    return Alert.objects.filter(kind__in=WATCHED).exclude(state=AlertState.RESOLVED)
