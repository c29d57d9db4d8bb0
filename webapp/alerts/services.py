"""Writes to alerts: raise, end, and what people do about them. Each is one transaction.

A source raises its condition under a key as often as it finds it. The alert is sent once, until it is over. Deliveries
are rows of the same transaction; the message that hurries them follows on commit and may be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from webapp import doorbell
from webapp.accounts.models import Project, User
from webapp.alerts.models import (
    About,
    Alert,
    AlertKind,
    AlertState,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    Seen,
    Severity,
)
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Job
from webapp.money.queries import unreal_below, unreal_words

BUILT_IN_NAME = "E-mail to the owners"
_INSTALLATION_NAME = "E-mail to this installation's staff"
GOOD_TO_KNOW_FOR = timedelta(days=7)
"""After so long, informational alerts end by themselves."""
SNOOZES: dict[str, timedelta | None] = {"hour": timedelta(hours=1), "day": timedelta(days=1), "change": None}
"""How long an alert can be snoozed. None: until it grows worse, or ends and is raised again."""


@transaction.atomic
def raise_alert(
    *,
    project_id: int | None,
    kind: str,
    subject: str,
    sentence: str,
    severity: str,
    dedupe_key: str,
    covers: Sequence[str] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> Alert:
    """Raise an alert and send it once. Raising an open alert again only updates it.

    An alert that grew worse is sent again, also if acknowledged or snoozed. Without a project it is for the staff.
    `covers`: the keys of all that it reports, where it is one alert for several ends.
    """
    now, severity = clock.now(), Severity(severity).value
    facts: dict[str, Any] = {
        "sentence": sentence,
        "severity": severity,
        "last_at": now,
        "covers": list(covers),
    }
    alert = _open_alert(project_id, dedupe_key)
    if alert is None:
        try:
            with transaction.atomic():
                alert = Alert.objects.create(
                    project_id=project_id,
                    kind=AlertKind(kind),
                    subject=subject,
                    dedupe_key=dedupe_key,
                    unreal=_unreal(subject),
                    first_at=now,
                    told_at=now,
                    state_at=now,
                    **facts,
                )
        except IntegrityError:  # a concurrent call raised it
            alert = _open_alert(project_id, dedupe_key)
            if alert is None:
                raise
        else:
            _send_out(alert, now)
            return alert
    worse = Severity(severity).rank > Severity(alert.severity).rank
    Alert.objects.filter(pk=alert.pk).update(raise_count=F("raise_count") + 1, **facts)
    if worse:
        _send_again(alert, now)
    alert.refresh_from_db()
    return alert


@transaction.atomic
def resolve_alert(
    *,
    project_id: int | None,
    dedupe_key: str,
    words: str = "It is over.",
    silently: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """End the alert, and send its end by the channels that sent the alert. False if none was open.

    A later alert under this key is new. `silently`: send no end, because another alert replaces this one.
    """
    alert = _open_alert(project_id, dedupe_key)
    if alert is None:
        return False
    now = clock.now()
    _set_state(alert, AlertState.RESOLVED, now, None)
    if not silently:
        Alert.objects.filter(pk=alert.pk).update(over_words=words)
        _send_end(alert, now)
    return True


@transaction.atomic
def acknowledge(*, alert: Alert, user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    """Record that a person looks after the alert. An alert that is over stays as it is."""
    _set_state(alert, AlertState.ACKNOWLEDGED, clock.now(), user)


@transaction.atomic
def snooze(*, alert: Alert, user: User, how_long: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Hide the alert for one of SNOOZES. It is sent again if it is still open then."""
    now, span = clock.now(), SNOOZES[how_long]
    _set_state(alert, AlertState.SNOOZED, now, user, until=None if span is None else now + span)


@transaction.atomic
def settle(*, alert: Alert, user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    """Record that a person considers the alert over. If it is not, it is raised again."""
    _set_state(alert, AlertState.RESOLVED, clock.now(), user)


def mark_seen(*, user: User, project: Project, clock: Clock = SYSTEM_CLOCK) -> None:
    """Mark all alerts sent until now as seen by this person."""
    Seen.objects.update_or_create(user=user, project=project, defaults={"at": clock.now()})


@transaction.atomic
def wake_snoozed(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Send alerts again whose snooze has ended. Returns how many."""
    now = clock.now()
    due = Alert.objects.filter(state=AlertState.SNOOZED, snoozed_until__lte=now)
    woken = list(due.select_for_update().order_by("pk")[:100]) if due.exists() else []
    for alert in woken:
        _send_again(alert, now)
    return len(woken)


def put_away_old(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """End informational alerts that are a week old. Returns how many."""
    now = clock.now()
    old = Alert.objects.filter(severity=Severity.INFO, last_at__lte=now - GOOD_TO_KNOW_FOR)
    return old.exclude(state=AlertState.RESOLVED).update(
        state=AlertState.RESOLVED, state_at=now, state_by=None
    )


def built_in_channel(project_id: int | None, clock: Clock = SYSTEM_CLOCK) -> Channel:
    """The project's built-in channel, created if there is none."""
    made, _ = Channel.objects.get_or_create(
        project_id=project_id,
        built_in=True,
        defaults={
            "way": ChannelKind.EMAIL,
            "name": BUILT_IN_NAME if project_id else _INSTALLATION_NAME,
            "created_at": clock.now(),
        },
    )
    return made


def _open_alert(project_id: int | None, dedupe_key: str) -> Alert | None:
    alerts = Alert.objects.select_for_update(of=("self",)).filter(
        Q(project_id=project_id), dedupe_key=dedupe_key
    )
    return alerts.exclude(state=AlertState.RESOLVED).first()


def _set_state(
    alert: Alert, state: AlertState, now: datetime, user: User | None, until: datetime | None = None
) -> None:
    changes = {"state": state, "state_at": now, "state_by": user, "snoozed_until": until}
    Alert.objects.filter(pk=alert.pk).exclude(state=AlertState.RESOLVED).update(**changes)
    alert.refresh_from_db()


def _send_again(alert: Alert, now: datetime) -> None:
    Alert.objects.filter(pk=alert.pk).update(
        send_count=F("send_count") + 1,
        told_at=now,
        state=AlertState.OPEN,
        state_at=now,
        state_by=None,
        snoozed_until=None,
    )
    alert.refresh_from_db()
    _send_out(alert, now)


def _send_out(alert: Alert, now: datetime) -> None:
    """Send the alert by each channel that takes it."""
    built_in_channel(alert.project_id)
    channels = Channel.objects.filter(Q(project_id=alert.project_id), on=True)
    _create_deliveries(alert, channels, now, turn=alert.send_count)


def _send_end(alert: Alert, now: datetime) -> None:
    """Send the end by each channel that sent the alert, or is still sending it."""
    sent = alert.deliveries.exclude(state=DeliveryState.FAILED).filter(channel__on=True)
    channels = {delivery.channel_id: delivery.channel for delivery in sent.select_related("channel")}
    _create_deliveries(alert, channels.values(), now, turn=alert.send_count + 1, over=True)


def _create_deliveries(alert: Alert, channels: Iterable[Channel], now: datetime, **fields: Any) -> None:
    """Create a delivery for each channel that takes this alert, and ring the worker after the commit."""
    wanted = [channel for channel in channels if _wants(channel, alert)]
    Delivery.objects.bulk_create(
        Delivery(alert=alert, channel=channel, created_at=now, due_at=now, **fields) for channel in wanted
    )
    if wanted:
        doorbell.alerts_on_commit()


def _wants(channel: Channel, alert: Alert) -> bool:
    """Whether the channel sends this alert. It does not send an alert about its own failure."""
    if alert.kind == AlertKind.CHANNEL and alert.subject == About.CHANNEL.subject(channel.pk):
        return False
    return alert.kind not in channel.silent_kinds


def _unreal(subject: str) -> str:
    scope, _, which = subject.partition(":")
    if scope == About.BUDGET and which.isdecimal():
        return unreal_below([int(which)]).get(int(which), "")
    of_subject = {About.JOB: "pk", About.GROUP: "groups"}.get(About(scope)) if scope in About.values else None
    if of_subject is None:
        return ""
    return unreal_words(
        {job.unreal for job in Job.objects.only("simulated", "emulated").filter(**{of_subject: which})}
    )
