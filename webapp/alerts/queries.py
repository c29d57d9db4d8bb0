"""Reads of alerts and channels for pages. Nothing here writes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from webapp.accounts.models import Membership, Project, User
from webapp.alerts.models import Alert, AlertKind, AlertState, Channel, Delivery, Rule, Seen, Severity
from webapp.http.responses import or_404

IN_BELL = 6
MOST_COUNTED = 100
NOT_OVER: tuple[str, ...] = (AlertState.OPEN, AlertState.ACKNOWLEDGED, AlertState.SNOOZED)
FILTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "": ("Active", (AlertState.OPEN,)),
    "open": ("Open", (AlertState.OPEN,)),
    "acknowledged": ("Acknowledged", (AlertState.ACKNOWLEDGED,)),
    "snoozed": ("Snoozed", (AlertState.SNOOZED,)),
    "over": ("Resolved", (AlertState.RESOLVED,)),
    "all": ("All", tuple(AlertState.values)),
}
"""The list's filters: key in the address, word, states."""
SHOWN_FILTERS = ("", "acknowledged", "snoozed", "over")
"""Those that the page offers; addresses with the others keep working."""

_NEW = Q(told_at__gt=F("seen_at"))
_NOT_ONLY_NEWS = ~Q(kind=AlertKind.JOB_FINISHED) | _NEW


@dataclass(frozen=True)
class AlertBell:
    """What the bell shows a person of a project."""

    new: int
    worst: str
    alerts: Sequence[Alert]

    @property
    def count(self) -> str:
        return "" if not self.new else str(self.new) if self.new < MOST_COUNTED else f"{MOST_COUNTED - 1}+"


def alerts_for(user: User, project: Project) -> QuerySet[Alert]:
    """The project's alerts, newest first; staff see those of the installation as well."""
    mine = Q(project=project)
    if user.is_staff:
        mine |= Q(project=None)
    shown = Alert.objects.filter(mine).exclude(kind=AlertKind.TEST)
    return shown.select_related("project", "state_by").order_by("-told_at", "-pk")


def list_of(user: User, project: Project, key: str, keep: Collection[int] = ()) -> QuerySet[Alert]:
    """The alerts of a filter, and those to `keep` in sight whatever their state is.

    That a job finished is news that asks nothing: once seen, it is among the resolved ones.
    """
    alerts, states = with_seen_at(user, project), Q(state__in=FILTERS[key][1])
    if key == "":
        states &= _NOT_ONLY_NEWS
    elif key == "over":
        states |= Q(kind=AlertKind.JOB_FINISHED) & ~_NEW
    return alerts.filter(states | Q(pk__in=keep))


def with_seen_at(user: User, project: Project) -> QuerySet[Alert]:
    """The alerts with `seen_at`: when the person last looked, or else joined. Later ones are new to them."""
    seen = Seen.objects.filter(user=user, project=project).values("at")
    joined = Membership.objects.filter(user=user, project=project).values("created_at")
    since = Coalesce(Subquery(seen), Subquery(joined), Value(user.date_joined))
    return alerts_for(user, project).annotate(seen_at=since)


def alert_for(user: User, project: Project, alert_id: int) -> Alert:
    return or_404(alerts_for(user, project).filter(pk=alert_id).first(), "alert")


def bell_of(user: User, project: Project) -> AlertBell:
    """The active alerts, as the list shows them, and how many of them are new to the person. One query, as it is on
    every page.
    """
    active = list_of(user, project, "").select_related(None).select_related("project")
    open_alerts = list(active[:MOST_COUNTED])
    new = [alert for alert in open_alerts if alert.told_at > alert.seen_at]  # type: ignore[attr-defined]
    worst = max((Severity(alert.severity) for alert in new), key=lambda severity: severity.rank, default="")
    return AlertBell(len(new), worst, open_alerts[:IN_BELL])


def rules_of(project: Project) -> QuerySet[Rule]:
    return Rule.objects.filter(project=project).select_related("created_by")


def rule_in(project: Project, rule_id: int) -> Rule:
    return or_404(rules_of(project).filter(pk=rule_id).first(), "rule")


def channels_of(project: Project) -> QuerySet[Channel]:
    """The project's channels, the built-in one first."""
    return Channel.objects.filter(project=project)


def channel_in(project: Project, channel_id: str) -> Channel:
    return or_404(channels_of(project).select_related("project").filter(pk=channel_id).first(), "channel")


def deliveries_of(channel: Channel) -> QuerySet[Delivery]:
    """Deliveries there, newest first."""
    return channel.deliveries.select_related("alert").order_by("-created_at", "-pk")


def delivery_in(project: Project, delivery_id: str) -> Delivery:
    rows = Delivery.objects.filter(pk=delivery_id, channel__project=project)
    return or_404(rows.select_related("channel", "alert").first(), "delivery")
