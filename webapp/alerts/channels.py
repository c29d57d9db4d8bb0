"""What owners do to channels: add, change, test, send again, take away. All writes; each in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models import F
from django.views.decorators.debug import sensitive_variables

from webapp import doorbell
from webapp.alerts import hourly_limits, mail_consent, safe_http
from webapp.alerts import secrets as alerts_secrets
from webapp.alerts.models import (
    About,
    Alert,
    Channel,
    Delivery,
    DeliveryState,
    Kind,
    Severity,
    State,
    Way,
)
from webapp.alerts.senders import chat
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.secret import Secret

CHANNELS_A_PROJECT = 20
ADDRESSES_A_CHANNEL = 20


class ChannelRefused(Exception):
    """A change that cannot be made; the text says why, for the page."""


@sensitive_variables()
def add(
    *, project: Any, way: str, clock: Clock = SYSTEM_CLOCK, **given: Any
) -> tuple[Channel, Secret | None]:
    """A channel by that way, of what its form gave; of a webhook also its signing key, to be shown once."""
    if way == Way.EMAIL:
        return add_mail(project=project, clock=clock, **given), None
    if way == Way.CHAT:
        return add_chat(project=project, clock=clock, **given), None
    return add_webhook(project=project, clock=clock, **given)


def add_mail(*, project: Any, name: str, addresses: Sequence[str], clock: Clock = SYSTEM_CLOCK) -> Channel:
    """A channel that writes to these addresses, as soon as whoever is behind each has agreed."""
    with transaction.atomic():
        mail_consent.ask(project.pk, addresses, clock=clock)
        return _add(project, Way.EMAIL, name, clock, addresses=list(addresses))


@sensitive_variables("url")
def add_chat(*, project: Any, name: str, url: Secret, clock: Clock = SYSTEM_CLOCK) -> Channel:
    """A channel through a chat service, by the address that it gave out."""
    try:
        service = chat.service_of(chat.notifier(url.reveal()))
    except safe_http.Refused as refusal:
        raise ChannelRefused(str(refusal)) from None
    return _add(project, Way.CHAT, name, clock, {"url": url}, place=service)


@sensitive_variables("url", "key")
def add_webhook(
    *, project: Any, name: str, url: Secret, clock: Clock = SYSTEM_CLOCK
) -> tuple[Channel, Secret]:
    """A channel that posts there, and the key that its messages are signed with, to be shown once."""
    try:
        safe_http.target_of(url.reveal())
    except (safe_http.Refused, safe_http.Away) as refusal:
        raise ChannelRefused(str(refusal)) from None
    key = alerts_secrets.new_signing_key()
    place = urlsplit(url.reveal()).hostname or ""
    secrets = {"url": url, "signing_key": key}
    return _add(project, Way.WEBHOOK, name, clock, secrets, place=place[:200]), key


def _add(
    project: Any,
    way: Way,
    name: str,
    clock: Clock,
    secrets: dict[str, Secret] | None = None,
    **fields: Any,
) -> Channel:
    if Channel.objects.filter(project=project).count() >= CHANNELS_A_PROJECT:
        raise ChannelRefused(f"A project has {CHANNELS_A_PROJECT} channels at most. Remove one first.")
    try:
        with transaction.atomic():
            made = Channel.objects.create(
                project=project, way=way, name=name, created_at=clock.now(), **fields
            )
            for field, secret in (secrets or {}).items():
                alerts_secrets.put(made, field, secret, clock)
            return made
    except IntegrityError:
        raise ChannelRefused(f"This project has a channel named {name} already.") from None
    except KeysUnusable as refusal:
        raise ChannelRefused(f"Nothing was stored. {refusal}") from None


def change(
    *,
    channel: Channel,
    name: str,
    on: bool,
    kinds: Sequence[str],
    addresses: Sequence[str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Set what the channel is called, whether anything goes out by it, and what does."""
    silent = [kind for kind in Kind.values if kind not in kinds and kind != Kind.TEST]
    changes: dict[str, Any] = {"on": on, "silent_kinds": silent}
    if not channel.built_in:
        changes["name"] = name
        if channel.way == Way.EMAIL and addresses is not None:
            changes["addresses"] = list(addresses)
    try:
        with transaction.atomic():
            Channel.objects.filter(pk=channel.pk).update(**changes)
            mail_consent.ask(channel.project_id, changes.get("addresses", ()), clock=clock)
    except IntegrityError:
        raise ChannelRefused(f"This project has a channel named {name} already.") from None
    channel.refresh_from_db()


def renew_key(*, channel: Channel, clock: Clock = SYSTEM_CLOCK) -> Secret:
    """Another signing key from now on, to be shown once."""
    if channel.way != Way.WEBHOOK:
        raise ChannelRefused(f"{channel.name} signs nothing: only webhooks do.")
    key = alerts_secrets.new_signing_key()
    alerts_secrets.put(channel, "signing_key", key, clock)
    return key


@transaction.atomic
def send_test(*, channel: Channel, user: Any, clock: Clock = SYSTEM_CLOCK) -> Delivery:
    """A message that somebody wants to see arrive; it goes the way of all others, but stands in no list.

    Raises ChannelRefused, also when the project sent as many as an hour has.
    """
    if channel.deliveries.filter(
        alert__kind=Kind.TEST, state__in=(DeliveryState.WAITING, DeliveryState.SENDING), attempts=0
    ).exists():
        raise ChannelRefused("A test message is on its way already.")
    _take_test(channel, clock)
    now = clock.now()
    alert = Alert.objects.create(
        project=channel.project,
        kind=Kind.TEST,
        subject=About.CHANNEL.subject(channel.pk),
        sentence=f"This is how alerts reach you by {channel.name}. {user} sent this test; there is nothing to do.",
        severity=Severity.INFO,
        dedupe_key=f"test:{uuid.uuid4().hex}",
        first_at=now,
        last_at=now,
        told_at=now,
        state=State.RESOLVED,
        state_at=now,
        state_by=user,
    )
    delivery = Delivery.objects.create(alert=alert, channel=channel, turn=1, created_at=now, due_at=now)
    doorbell.alerts_on_commit()
    return delivery


@transaction.atomic
def replay(*, delivery: Delivery, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Send again what was sent or given up, with all its attempts; False if it is on its way anyhow.

    A test message sent again is one more: raises ChannelRefused when the project sent as many as an hour has.
    """
    over = Delivery.objects.filter(pk=delivery.pk, state__in=(DeliveryState.SENT, DeliveryState.FAILED))
    again = over.update(
        state=DeliveryState.WAITING, due_at=clock.now(), attempts=0, replays=F("replays") + 1, last_error=""
    )
    if again:
        if delivery.alert.kind == Kind.TEST:
            _take_test(delivery.channel, clock)
        doorbell.alerts_on_commit()
    return bool(again)


def _take_test(channel: Channel, clock: Clock) -> None:
    try:
        hourly_limits.take(channel.project_id, "test", clock=clock)
    except hourly_limits.OverLimit as over:
        raise ChannelRefused(str(over)) from None


@transaction.atomic
def remove(*, channel: Channel) -> None:
    """Take the channel away with its secrets and its log. The built-in one can only be turned off."""
    if channel.built_in:
        raise ChannelRefused(f"{channel.name} belongs to the project. It can be turned off.")
    key = About.CHANNEL.subject(channel.pk)
    Alert.objects.filter(project=channel.project, dedupe_key=key).update(state=State.RESOLVED)
    channel.delete()
