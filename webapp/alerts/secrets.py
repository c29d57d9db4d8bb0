"""Secrets of channels: sealed when they are set, opened only to send."""

from __future__ import annotations

import secrets

from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from webapp.alerts.models import SECRET_FIELDS, Channel, ChannelSecret
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import key_ring
from webapp.connections.sealing import CannotOpen, Secret, seal, unseal


def new_signing_key() -> Secret:
    """A new key that signs a webhook's messages: 256 random bits."""
    return Secret(f"whsec_{secrets.token_urlsafe(32)}")


@sensitive_variables("secret")
def seal_secret(channel: Channel, field: str, secret: Secret, clock: Clock = SYSTEM_CLOCK) -> None:
    """Seal the channel's secret, in place of an older one. Raises KeysUnusable."""
    if field not in SECRET_FIELDS[channel.way]:
        raise ValueError(f"a channel by {channel.way} has no secret named {field}")
    with key_ring.locked(), transaction.atomic():
        sealed = seal(secret, channel.sealed_place(field), key_ring.ring().first)
        ChannelSecret.objects.update_or_create(
            channel=channel,
            field=field,
            defaults={
                "key_id": sealed.key_id,
                "wrapped_key": sealed.wrapped_key,
                "ciphertext": sealed.ciphertext,
                "set_at": clock.now(),
            },
        )


@sensitive_variables()
def open_secret(channel: Channel, field: str) -> Secret:
    """The channel's secret. Raises CannotOpen."""
    row = ChannelSecret.objects.select_related("channel").filter(channel=channel, field=field).first()
    if row is None:
        raise CannotOpen("The set-up of this channel is incomplete. Remove it and add it again.")
    return unseal(row.sealed(), row.place(), key_ring.ring().by_id)
