"""Alert rules of a project's own: "return > 2,000", "kl > 0.1", "no improvement for $1".

A rule is read by `parse`, held against a running job by `finding`, and scanned like the anomalies. Its alert ends
when the rule has not held for a while, so that a figure near its bound sends one message and not one each round.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite
from typing import Any

from django.db import transaction

from webapp.accounts.models import Project, User
from webapp.alerts import services
from webapp.alerts.models import About, Alert, AlertKind, AlertState, Rule, Severity
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd, ungroup
from webapp.job_states import Observed
from webapp.jobs.charts.figures import LINES
from webapp.jobs.events.job_summary import spent_since_best
from webapp.jobs.models import Job, Round
from webapp.money.amounts import PICODOLLARS_PER_USD, read_usd

log = logging.getLogger(__name__)

MOST_RULES = 20
FIGURES = tuple(LINES)
"""The figures of a round that a rule may compare, as charts and TensorBoard have them."""
EXAMPLES = ("return > 2,000", "kl > 0.1", "no improvement for $1")
_COMPARISON = re.compile(r"([a-z_]+)\s*([<>])\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)", re.IGNORECASE)
_NO_IMPROVEMENT = re.compile(r"no improvement for \$\s*([\d,]*\.?\d+)", re.IGNORECASE)
QUIET_FOR = timedelta(minutes=15)
"""An alert ends when its rule has not held for so long."""
QUIET_MINUTES = QUIET_FOR // timedelta(minutes=1)
NO_LONGER = f"The rule has not held for {QUIET_MINUTES} minutes."
NOT_RUNNING = "The job is no longer running."
REMOVED = "The rule was removed."


class RuleRefused(ValueError):
    """The rule is not kept. The text says why."""


@dataclass(frozen=True)
class FigureRule:
    """A figure of the last round above (`over`) or below a value."""

    figure: str
    over: bool
    value: float

    @property
    def text(self) -> str:
        return f"{self.figure} {'>' if self.over else '<'} {_number(self.value)}"

    def holds(self, figures: Mapping[str, float | None]) -> bool:
        known = figures.get(self.figure)
        return known is not None and (known > self.value if self.over else known < self.value)


@dataclass(frozen=True)
class NoImprovement:
    """No evaluation was better than the best one, while so much was spent."""

    picodollars: int

    @property
    def text(self) -> str:
        return f"no improvement for {display_usd(self.picodollars)}"


Parsed = FigureRule | NoImprovement


def parse(text: str) -> Parsed:
    """Return the rule that a text means. RuleRefused, with examples, for any other text.

    Its own `text` means the same rule: numbers are rounded as they are written.
    """
    text = " ".join(text.split())
    if match := _NO_IMPROVEMENT.fullmatch(text):
        return NoImprovement(_picodollars(match[1]))
    if match := _COMPARISON.fullmatch(text):
        figure, sign, value = match[1].lower(), match[2], _value(match[3])
        if figure not in FIGURES:
            raise RuleRefused(f"{figure} is no figure of a round; known are {', '.join(FIGURES)}.")
        if not isfinite(value):
            raise RuleRefused(f"{match[3]} is too large a number.")
        return FigureRule(figure, sign == ">", _value(_number(value)))
    raise RuleRefused(f"Write a rule as “{EXAMPLES[0]}”, “{EXAMPLES[1]}” or “{EXAMPLES[2]}”.")


def _value(text: str) -> float:
    try:
        return float(ungroup(text))
    except ValueError:
        raise RuleRefused(f"{text} is no number: commas only separate thousands, such as 2,000.") from None


def _number(value: float) -> str:
    return f"{value:,.12g}"


def _picodollars(text: str) -> int:
    try:
        amount = _amount(display_usd(_amount(text)))
    except ValueError as refusal:
        raise RuleRefused(str(refusal)) from None
    if not 0 < amount <= 10**6 * PICODOLLARS_PER_USD:
        raise RuleRefused("The amount must be above $0 and at most $1,000,000.")
    return amount


def _amount(text: str) -> int:
    return int(read_usd(text) * PICODOLLARS_PER_USD)


# What people do


@transaction.atomic
def add_rule(*, project: Project, user: User, text: str, clock: Clock = SYSTEM_CLOCK) -> Rule:
    """Keep a rule for all jobs of the project; the same rule again is the one there is. Raises RuleRefused."""
    words = parse(text).text
    known = Rule.objects.filter(project=project)
    if (same := known.filter(text=words).first()) is not None:
        return same
    if known.count() >= MOST_RULES:
        raise RuleRefused(f"A project keeps at most {MOST_RULES} rules; remove one first.")
    return Rule.objects.create(project=project, text=words, created_by=user, created_at=clock.now())


@transaction.atomic
def remove_rule(*, rule: Rule, clock: Clock = SYSTEM_CLOCK) -> None:
    """Delete a rule; its alerts end."""
    for alert in _open_alerts().filter(project_id=rule.project_id, dedupe_key__endswith=_key("", rule)):
        _end(alert, REMOVED, clock)
    rule.delete()


# The scan


def scan_rules(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Raise alerts where rules hold for running jobs, and end those long quiet. Return how many rules hold."""
    by_project: dict[int, list[tuple[Rule, Parsed]]] = {}
    for rule in Rule.objects.order_by("pk"):
        try:
            by_project.setdefault(rule.project_id, []).append((rule, parse(rule.text)))
        except RuleRefused as refusal:  # kept by another version, which knew other figures
            log.warning("alert rule %s of project %s: %s", rule.pk, rule.project_id, refusal)
    holding: set[str] = set()
    running: set[str] = set()
    jobs = Job.objects.filter(project__in=by_project, observed=Observed.RUNNING, round_no__gt=0)
    for job in jobs.select_related("account"):
        subject = About.JOB.subject(job.pk)
        running.add(subject)
        figures = _figures(job)
        for rule, meant in by_project[job.project_id]:
            sentence = finding(job, meant, figures)
            if not sentence:
                continue
            holding.add(_key(subject, rule))
            services.raise_alert(
                project_id=job.project_id,
                kind=AlertKind.RULE,
                subject=subject,
                sentence=sentence,
                severity=Severity.WARNING,
                dedupe_key=_key(subject, rule),
                clock=clock,
            )
    quiet_since = clock.now() - QUIET_FOR
    for alert in _open_alerts().exclude(dedupe_key__in=holding):
        if alert.subject not in running:
            _end(alert, NOT_RUNNING, clock)
        elif alert.last_at <= quiet_since:
            _end(alert, NO_LONGER, clock)
    return len(holding)


def finding(job: Job, rule: Parsed, figures: Mapping[str, float | None]) -> str:
    """Return the alert's sentence if the rule holds for the job; else an empty one."""
    if isinstance(rule, NoImprovement):
        spent = spent_since_best(job)
        if spent is None or spent < rule.picodollars:
            return ""
        return f"{job.name} has spent {display_usd(spent)} since its best evaluation. Rule: {rule.text}."
    if not rule.holds(figures):
        return ""
    value = figures[rule.figure]
    when = f"{job.declaration.round_name} {job.round_no:,}"
    return f"{job.name} has {rule.figure} {value:,.4g} in {when}. Rule: {rule.text}."


def _figures(job: Job) -> dict[str, float | None]:
    """Return the figures of the job's last round."""
    report = (
        Round.objects.filter(job=job, round_no=job.round_no).values_list("payload__report", flat=True).first()
    )
    return {} if report is None else {name: line.read(report) for name, line in LINES.items()}


def _key(subject: str, rule: Rule) -> str:
    return f"{subject}:rule:{rule.pk}"


def _open_alerts() -> Any:
    return Alert.objects.filter(kind=AlertKind.RULE).exclude(state=AlertState.RESOLVED)


def _end(alert: Alert, words: str, clock: Clock) -> None:
    services.resolve_alert(project_id=alert.project_id, dedupe_key=alert.dedupe_key, words=words, clock=clock)
