"""Writes of owners to channels: add, change, test, send again, remove. Each is one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models import F
from django.views.decorators.debug import sensitive_variables

from webapp import doorbell
from webapp.accounts.models import Project, User
from webapp.alerts import mail_consent, project_mail
from webapp.alerts import secrets as alerts_secrets
from webapp.alerts.models import (
    About,
    Alert,
    AlertKind,
    AlertState,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    Severity,
)
from webapp.alerts.senders import chat
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.sealing import Secret
from webapp.http import safe_http
from webapp.http.refusals import ActionRefused

CHANNELS_A_PROJECT = 20
ADDRESSES_A_CHANNEL = 20


class ChannelRefused(ActionRefused):
    """The change is refused; the text says why, for the page."""


@sensitive_variables()
def add(
    *, project: Project, way: str, clock: Clock = SYSTEM_CLOCK, **given: Any
) -> tuple[Channel, Secret | None]:
    """A new channel from its form's values. For a webhook also its signing key, to be shown once."""
    if way == ChannelKind.EMAIL:
        return add_mail(project=project, clock=clock, **given), None
    if way == ChannelKind.CHAT:
        return add_chat(project=project, clock=clock, **given), None
    return add_webhook(project=project, clock=clock, **given)


def add_mail(
    *, project: Project, name: str, addresses: Sequence[str], clock: Clock = SYSTEM_CLOCK
) -> Channel:
    """A new mail channel. An address outside the project gets mails once its reader agrees."""
    with transaction.atomic():
        mail_consent.request_consent(project.pk, addresses, clock=clock)
        return _add(project, ChannelKind.EMAIL, name, clock, addresses=list(addresses))


@sensitive_variables("url")
def add_chat(*, project: Project, name: str, url: Secret, clock: Clock = SYSTEM_CLOCK) -> Channel:
    """A new chat channel, by the address that the chat service issued."""
    try:
        service = chat.service_of(chat.notifier(url.reveal()))
    except safe_http.AddressRefused as refusal:
        raise ChannelRefused(str(refusal)) from None
    return _add(project, ChannelKind.CHAT, name, clock, {"url": url}, place=service)


@sensitive_variables("url", "key")
def add_webhook(
    *, project: Project, name: str, url: Secret, clock: Clock = SYSTEM_CLOCK
) -> tuple[Channel, Secret]:
    """A new webhook channel, and the key that signs its messages, to be shown once."""
    try:
        safe_http.target_of(url.reveal())
    except (safe_http.AddressRefused, safe_http.HostUnreachable) as refusal:
        raise ChannelRefused(str(refusal)) from None
    key = alerts_secrets.new_signing_key()
    place = urlsplit(url.reveal()).hostname or ""
    secrets = {"url": url, "signing_key": key}
    return _add(project, ChannelKind.WEBHOOK, name, clock, secrets, place=place[:200]), key


def _add(
    project: Project,
    way: ChannelKind,
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
                alerts_secrets.seal_secret(made, field, secret, clock)
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
    """Set the channel's name, whether it is on, which kinds of alerts it sends, and its addresses."""
    silent = [kind for kind in AlertKind.values if kind not in kinds and kind != AlertKind.TEST]
    changes: dict[str, Any] = {"on": on, "silent_kinds": silent}
    if not channel.built_in:
        changes["name"] = name
        if channel.way == ChannelKind.EMAIL and addresses is not None:
            changes["addresses"] = list(addresses)
    try:
        with transaction.atomic():
            Channel.objects.filter(pk=channel.pk).update(**changes)
            mail_consent.request_consent(channel.project_id, changes.get("addresses", ()), clock=clock)
    except IntegrityError:
        raise ChannelRefused(f"This project has a channel named {name} already.") from None
    channel.refresh_from_db()


def renew_key(*, channel: Channel, clock: Clock = SYSTEM_CLOCK) -> Secret:
    """A new signing key, to be shown once. It replaces the old one."""
    if channel.way != ChannelKind.WEBHOOK:
        raise ChannelRefused(f"{channel.name} signs nothing: only webhooks do.")
    key = alerts_secrets.new_signing_key()
    alerts_secrets.seal_secret(channel, "signing_key", key, clock)
    return key


@transaction.atomic
def send_test(*, channel: Channel, user: User, clock: Clock = SYSTEM_CLOCK) -> Delivery:
    """Send a test message. It goes the way of all others, but appears in no list.

    ChannelRefused if one is on its way, or if the project has reached its hourly limit.
    """
    if channel.deliveries.filter(
        alert__kind=AlertKind.TEST, state__in=(DeliveryState.WAITING, DeliveryState.SENDING), attempts=0
    ).exists():
        raise ChannelRefused("A test message is on its way already.")
    _take_test(channel, clock)
    now = clock.now()
    alert = Alert.objects.create(
        project=channel.project,
        kind=AlertKind.TEST,
        subject=About.CHANNEL.subject(channel.pk),
        sentence=f"This is how alerts reach you by {channel.name}. {user} sent this test; there is nothing to do.",
        severity=Severity.INFO,
        dedupe_key=f"test:{uuid.uuid4().hex}",
        first_at=now,
        last_at=now,
        told_at=now,
        state=AlertState.RESOLVED,
        state_at=now,
        state_by=user,
    )
    delivery = Delivery.objects.create(alert=alert, channel=channel, turn=1, created_at=now, due_at=now)
    doorbell.alerts_on_commit()
    return delivery


@transaction.atomic
def replay(*, delivery: Delivery, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Send a finished delivery again, with all its attempts. False if it is still on its way.

    A test message counts again: ChannelRefused if the project has reached its hourly limit.
    """
    over = Delivery.objects.filter(pk=delivery.pk, state__in=(DeliveryState.SENT, DeliveryState.FAILED))
    again = over.update(
        state=DeliveryState.WAITING, due_at=clock.now(), attempts=0, replays=F("replays") + 1, last_error=""
    )
    if again:
        if delivery.alert.kind == AlertKind.TEST:
            _take_test(delivery.channel, clock)
        doorbell.alerts_on_commit()
    return bool(again)


def _take_test(channel: Channel, clock: Clock) -> None:
    try:
        project_mail.take(channel.project_id, "test", clock=clock)
    except project_mail.OverLimit as over:
        raise ChannelRefused(str(over)) from None


@transaction.atomic
def remove(*, channel: Channel) -> None:
    """Delete the channel, its secrets and its log. ChannelRefused for the built-in one."""
    if channel.built_in:
        raise ChannelRefused(f"{channel.name} belongs to the project. It can be turned off.")
    key = About.CHANNEL.subject(channel.pk)
    Alert.objects.filter(project=channel.project, dedupe_key=key).update(state=AlertState.RESOLVED)
    channel.delete()
